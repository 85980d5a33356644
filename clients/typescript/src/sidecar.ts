/** The way in: what a program asks of its sidecar. */
import { setTimeout as pause } from "node:timers/promises";
import { Duty, type ServeOptions, Serving } from "./duties.js";
import { Hold, type HoldOptions } from "./hold.js";
import { Address, type AddressOptions, Problem, Unreachable } from "./http.js";

/** A lease, as the store shows it. */
export interface Lease {
  lease: string;
  term: number;
  /** What `after` takes, to wait for the next change. */
  cursor: string;
  leader: { node: string; member: string; address: string | null; term: number; payload: string | null } | null;
}

const AGAIN = ["lost", "stopping", "too-many", "store", "held"];

/**
 * `incumbent serve`, at `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`. A Unix socket is best: the sidecar
 * sees at once when this process is gone.
 */
export class Sidecar {
  readonly #address: Address;

  constructor(url: string, options: AddressOptions = {}) {
    this.#address = new Address(url, options);
  }

  /** Waits until this process leads. Use it with `await using`, or call `release` when the work has ended. */
  async hold(lease: string, options: HoldOptions): Promise<Hold> {
    return Hold.elected(this.#address, lease, options);
  }

  /**
   * Runs the work whenever this process leads, until the work returns while it still leads. What the work throws is
   * thrown here, after the lease is freed. Losses and a sidecar that is away are not: this process stands again.
   */
  async lead(lease: string, work: (hold: Hold) => Promise<void>, options: HoldOptions): Promise<void> {
    for (;;) {
      let hold: Hold | undefined;
      try {
        hold = await this.hold(lease, options);
      } catch (error) {
        options.signal?.throwIfAborted();
        if (!(error instanceof Unreachable || (error instanceof Problem && AGAIN.includes(error.code)))) throw error;
      }
      try {
        if (hold) await work(hold);
        if (hold?.isHeld()) return;
      } finally {
        await hold?.release();
      }
      await pause(100 + Math.random() * 400, undefined, options.signal ? { signal: options.signal } : {});
    }
  }

  /** Runs `work(duty)` for each duty that is placed on this process. */
  async serve(family: string, work: (duty: Duty) => Promise<void>, options: ServeOptions): Promise<Serving> {
    return Serving.begin(this.#address, family, work, options);
  }

  /** The lease as the store shows it; with the last `cursor` it waits until that has changed. */
  async leader(lease: string, after?: string, wait = "30s"): Promise<Lease> {
    const query = after === undefined ? "" : `?after=${encodeURIComponent(after)}&wait=${wait}`;
    return (await this.#address.ask("GET", `/v1/leases/${encodeURIComponent(lease)}${query}`, undefined, 75_000)) as Lease;
  }

  /** Whether a client of this sidecar holds the lease, as load balancers ask it. */
  async isLeader(lease: string): Promise<boolean> {
    try {
      return Boolean((await this.#address.ask("GET", `/leader/${encodeURIComponent(lease)}`))["here"]);
    } catch (error) {
      if (error instanceof Problem && error.status === 503) return false;
      throw error;
    }
  }
}
