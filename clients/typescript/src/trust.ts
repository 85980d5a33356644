/** How long this process may believe that it leads: by its own clock, at the moment of the question. */
import * as fs from "node:fs";

const LINUX = process.platform === "linux";
let uptime = -1;
const text = Buffer.alloc(64);

/**
 * Nanoseconds of CLOCK_BOOTTIME, at most and at least: Node.js has no better way to it than /proc/uptime, which
 * counts hundredths of a second. `process.hrtime` stands still while a machine sleeps, on Linux.
 */
export function clock(): { least: bigint; most: bigint } {
  if (!LINUX) {
    const now = process.hrtime.bigint();
    return { least: now, most: now };
  }
  if (uptime < 0) uptime = fs.openSync("/proc/uptime", "r");
  const length = fs.readSync(uptime, text, 0, text.length, 0);
  const [seconds = "0", hundredths = "00"] = text.toString("latin1", 0, length).split(" ", 1)[0]!.split(".");
  const least = BigInt(seconds) * 1_000_000_000n + BigInt(hundredths.padEnd(2, "0")) * 10_000_000n;
  return { least, most: least + 10_000_000n };
}

/** The end of trust in one term: read from the sidecar's file, or counted from its answers. */
export class Trust {
  #file = -1;
  #counted = 0n;
  #over = false;
  readonly #process = process.pid;
  readonly #word = Buffer.alloc(8);

  get byFile(): boolean {
    return this.#file >= 0;
  }

  /** Uses the trust file if this process may: on the same boot, and with the same clock. */
  open(path: string | undefined, hold: string, term: bigint): void {
    if (path === undefined || !LINUX) return;
    let file = -1;
    try {
      file = fs.openSync(path, "r");
      const page = Buffer.alloc(128);
      const boot = fs.readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim().replaceAll("-", "");
      const fits =
        fs.readSync(file, page, 0, 128, 0) === 128 &&
        page.toString("latin1", 0, 8) === "INCTRST1" &&
        page.readBigUInt64LE(16) === term &&
        page.toString("hex", 24, 40) === hold &&
        page.toString("hex", 40, 56) === boot &&
        page.readBigUInt64LE(56) === timeNamespace();
      if (fits) this.#file = file;
    } catch {
      // Elsewhere, or not allowed to look: the sidecar is asked.
    } finally {
      if (file >= 0 && !this.byFile) fs.closeSync(file);
    }
  }

  /** Takes in an answer, counted from before its question was sent. */
  count(sent: bigint, trustedForMs: number): void {
    const until = sent + BigInt(Math.floor(trustedForMs)) * 1_000_000n;
    if (until > this.#counted) this.#counted = until;
  }

  end(): void {
    this.#over = true;
    if (this.#file >= 0) fs.closeSync(this.#file);
    this.#file = -1;
    this.#counted = 0n;
  }

  /** When trust ends, as far as is known now. It may end sooner. */
  until(): bigint {
    if (this.#file < 0) return this.#counted;
    for (;;) {
      const first = this.#load();
      if (first === this.#load()) return first;
    }
  }

  /** Whether trust lasts at this moment. Once the answer is no it stays no. */
  lasts(): boolean {
    if (this.#over || process.pid !== this.#process) return false;
    const until = this.until(); // Before the clock: a pause in between costs trust, and never adds any.
    if (clock().most < until) return true;
    this.end();
    return false;
  }

  /** Eight bytes; what can't be read counts as the end. */
  #load(): bigint {
    return fs.readSync(this.#file, this.#word, 0, 8, 8) === 8 ? this.#word.readBigUInt64LE(0) : 0n;
  }
}

function timeNamespace(): bigint {
  if (!fs.existsSync("/proc/self/ns/time")) return 0n; // A kernel without them has one clock for all.
  return BigInt(/^time:\[(\d+)\]$/.exec(fs.readlinkSync("/proc/self/ns/time"))![1]!);
}
