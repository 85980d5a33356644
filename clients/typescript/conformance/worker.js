// Runs the duties that are placed on it and writes down what it is told of each, until its standard input ends.
// `node worker.js SIDECAR NODE FILE`: a history for each duty, in `FILE.DUTY`.
import * as fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Sidecar } from "../dist/index.js";
import { clock } from "../dist/trust.js";

const [, , url, name, file] = process.argv;
const sidecar = new Sidecar(url);
let leave;
const over = new Promise((resolve) => (leave = resolve));
let isOver = false;
process.stdin.resume();
process.stdin.on("end", () => {
  isOver = true;
  leave();
});

// The clock is known to a hundredth of a second: each moment is rounded away from what it is to prove.
async function work(duty) {
  const log = fs.openSync(`${file}.${duty.name}`, "a");
  const note = (line) => fs.writeSync(log, `${line}\n`);
  note(`elected ${clock().most} ${duty.term}`);
  console.log(duty.name, duty.term);
  let trusted = 0n; // Until when the last yes was true.
  for (;;) {
    const before = clock().least;
    const held = duty.isHeld();
    const until = duty.trust.until();
    note(`asked ${before} ${clock().most} ${duty.term} ${held ? 1 : 0} ${until}`);
    if (!held) break;
    trusted = until;
    await pause(5);
  }
  note(`lost ${clock().most} ${duty.term} ${clock().least >= trusted ? 1 : 0}`);
  fs.closeSync(log);
}

while (!isOver) {
  try {
    const serving = await sidecar.serve("work", work, { name, duties: ["a", "b", "c", "d"], ttl: "3s", grace: "1s" });
    await Promise.race([over, serving.ended]);
    await serving.close();
  } catch {
    // It is tried again.
  }
  await pause(50);
}
process.exit(0);
