/** Duties of a family that run in this process while its node was chosen for them. */
import type { IncomingMessage } from "node:http";
import { Held } from "./hold.js";
import { Address, type Json, lines } from "./http.js";

export interface ServeOptions {
  name: string;
  duties: string[];
  version?: string;
  capacity?: number;
  max_duties?: number;
  address?: string;
  labels?: Record<string, string>;
  ttl?: string;
  grace?: string;
  /** The promise that the work of each duty calls `progress` at least so often, such as `30s`. */
  watchdog?: string;
}

/** One duty that runs here, under a term of its own. */
export class Duty extends Held {
  /** @internal */
  done: Promise<void> = Promise.resolve();
  constructor(sidecar: Address, family: string, readonly name: string) {
    super(sidecar, `${family}/${name}`);
  }
}

/** A process that serves a family. Made by `Sidecar.serve`. */
export class Serving {
  readonly #running = new Map<string, Duty>();
  #renewing: NodeJS.Timeout | undefined;
  #id = "";
  #closing = false;
  /** Resolved when this process serves no longer. */
  readonly ended: Promise<void>;

  private constructor(
    private readonly sidecar: Address,
    readonly family: string,
    private readonly work: (duty: Duty) => Promise<void>,
    private readonly stream: IncomingMessage,
  ) {
    this.ended = this.#read();
  }

  /** @internal */
  static async begin(sidecar: Address, family: string, work: (duty: Duty) => Promise<void>, body: ServeOptions): Promise<Serving> {
    const path = `/v1/families/${encodeURIComponent(family)}/serve`;
    return new Serving(sidecar, family, work, await sidecar.send("POST", path, body, 30_000));
  }

  /** The duties that run here now, by name. */
  running(): Map<string, Duty> {
    return new Map([...this.#running.values()].map((duty) => [duty.name, duty]));
  }

  /** Ends all duties here, waits until the work of each has ended, and leaves. */
  async close(): Promise<void> {
    this.#closing = true;
    const running = [...this.#running.values()];
    for (const duty of running) duty.stop("released");
    await Promise.all(running.map((duty) => duty.done));
    // What can't be told is free once the trust that was told has run out.
    if (this.#id) await this.sidecar.ask("DELETE", `/v1/holds/${this.#id}`).catch(() => {});
    this.stream.destroy();
    await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #read(): Promise<void> {
    let ttl = 30_000;
    for await (const line of lines(this.stream, () => ttl)) {
      const running = this.#running.get(line["run"]);
      if (line["event"] === "serving") {
        this.#id = line["hold"];
        ttl = line["ttl_ms"];
        this.#renewing = setInterval(() => this.#renew(), line["renew_ms"]);
      } else if (line["event"] === "prepare") {
        void this.#report(this.#id, { state: "prepared", duty: line["duty"] });
      } else if (line["event"] === "start") {
        if (this.#closing) continue;
        const duty = new Duty(this.sidecar, this.family, line["duty"]);
        this.#running.set(line["run"], duty);
        duty.done = this.#run(duty, line);
      } else if (line["event"] === "stop") {
        running?.stop(line["why"]);
      } else if (line["event"] === "abort") {
        running?.trust.end();
        running?.stop(line["why"]);
      } else if (line["event"] === "lost") {
        break;
      }
    }
    clearInterval(this.#renewing);
    for (const duty of this.#running.values()) duty.stop("cannot-tell");
  }

  async #run(duty: Duty, line: Json): Promise<void> {
    let outcome: Json = { state: "stopped" };
    try {
      await duty.begin(line, line["run"]);
      await this.#report(line["run"], { state: "started" });
      await this.work(duty);
    } catch (error) {
      // The work's own: the cluster counts it, and may place it elsewhere.
      outcome = { state: "failed", error: String(error).slice(0, 500) };
    } finally {
      duty.trust.end();
      await this.#report(line["run"], outcome);
      this.#running.delete(line["run"]);
    }
  }

  /** What fails here ends by itself: trust runs out. */
  #renew(): void {
    if (!this.sidecar.isUnix) this.sidecar.ask("PUT", `/v1/holds/${this.#id}`, { nonce: "" }).catch(() => {});
    for (const duty of this.#running.values()) if (!duty.trust.byFile) duty.askTrust().catch(() => {});
  }

  async #report(id: string, state: Json): Promise<void> {
    // The stream, or the end of trust, tells the rest.
    await this.sidecar.ask("POST", `/v1/holds/${id}/report`, state).catch(() => {});
  }
}
