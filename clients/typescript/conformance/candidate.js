// Stands for a lease and writes down what it is told, until its standard input ends.
// `node candidate.js [--watchdog] SIDECAR NODE FILE`; `resign` on its standard input makes it give the lease up and stand
// again. With `--watchdog` it reports progress until `stick` on its standard input makes it forget to; then it has to lose
// the lease for that reason, and for no other.
// `INCUMBENT_TEST_TLS` names a directory with the certificates to use: `ca.crt`, `client.crt` and `client.key`.
import * as fs from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Sidecar } from "../dist/index.js";
import { clock } from "../dist/trust.js";

const [url, name, file] = process.argv.slice(-3);
const watched = process.argv.includes("--watchdog");
const place = process.env.INCUMBENT_TEST_TLS;
const read = (name) => fs.readFileSync(`${place}/${name}`);
const sidecar = new Sidecar(url, place ? { tls: { ca: read("ca.crt"), cert: read("client.crt"), key: read("client.key") } } : {});
const log = fs.openSync(file, "a");
const note = (line) => fs.writeSync(log, `${line}\n`);
const orders = [];
let over = false;
const input = createInterface({ input: process.stdin });
input.on("line", (line) => orders.push(line.trim()));
input.on("close", () => {
  over = true;
  setTimeout(() => process.exit(0), 2000).unref(); // Who still waits for the lease has nothing to give back.
});

// Until when it is trusted, or 0. The clock is known to a hundredth of a second: each moment is rounded away from what it is to prove.
function ask(hold) {
  const before = clock().least;
  const held = hold.isHeld();
  const until = hold.trust.until();
  note(`asked ${before} ${clock().most} ${hold.term} ${held ? 1 : 0} ${until}`);
  return held ? until : 0n;
}

async function stand() {
  const hold = await sidecar.hold("lease", { name, ttl: "3s", grace: "1s", ...(watched && { watchdog: "2s" }) });
  try {
    note(`elected ${clock().most} ${hold.term}`);
    console.log(hold.term);
    let trusted = 0n; // Until when the last yes was true.
    let stuck = !watched;
    for (let until; (until = ask(hold)); ) {
      trusted = until;
      const order = orders.shift();
      if (over || order === "resign") break;
      stuck ||= order === "stick";
      if (!stuck) await hold.progress().catch(() => {});
      await pause(watched ? 100 : 5);
    }
    note(`lost ${clock().most} ${hold.term} ${clock().least >= trusted ? 1 : 0}`);
    // The trust file may say that it ends a moment before the stream says why.
    for (let i = 0; watched && i < 200 && !hold.why; i++) await pause(10);
    // No history has such a line.
    if (watched && (hold.why === "stuck") !== stuck && !over) note(`lost because ${hold.why}`);
  } finally {
    await hold.release();
  }
}

while (!over) {
  await stand().catch(() => {});
  await pause(50);
}
process.exit(0);
