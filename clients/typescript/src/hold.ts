/** One candidacy for one lease: it waits, is elected at most once, and is over for good when it is lost. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Address, type Json, lines, Problem, Unreachable } from "./http.js";
import { clock, Trust } from "./trust.js";

export interface HoldOptions {
  /** Who is to hold it, as people will see it. */
  name: string;
  address?: string;
  payload?: string;
  labels?: Record<string, string>;
  /** `false`: one attempt, and a `Problem` with the code `held` if somebody else has the lease. */
  wait?: boolean;
  ttl?: string;
  grace?: string;
  priority?: number;
  /** `ended` promises that the connection is direct and that work ends before it is closed. */
  on_close?: "wait" | "ended";
  /** The promise that the work calls `progress` at least so often, such as `30s`. */
  watchdog?: string;
  /** Stops waiting, or ends the hold. */
  signal?: AbortSignal;
}

/** What is common to a lease that is held and a duty that runs: a term, and trust in it. */
export class Held {
  readonly trust = new Trust();
  readonly #stopping = new AbortController();
  #watch: NodeJS.Timeout | undefined;
  id = "";
  /** The fencing token: hand it to whatever the work writes to. */
  term = 0;
  /** Why it ends or has ended: `resigned`, `shutdown`, `cannot-tell` and others. */
  why: string | undefined;

  constructor(protected readonly sidecar: Address, readonly lease: string) {}

  /** Aborted when the work has to end. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Whether the work may go on. Asks neither the sidecar nor the store. A no is final. */
  isHeld(): boolean {
    return !this.signal.aborted && this.isTrusted();
  }

  /** Whether trust lasts, also after the work was told to end: for what it does in its grace. */
  isTrusted(): boolean {
    return this.term > 0 && this.trust.lasts();
  }

  /**
   * Says that the work comes on, where `watchdog` promised it; `text` says of a duty what it is at. Call it from the
   * work itself. Throws a `Problem` once it is over.
   */
  async progress(text?: string): Promise<void> {
    await this.sidecar.ask("POST", `/v1/holds/${this.id}/progress`, text === undefined ? {} : { text });
  }

  /** @internal */
  async askTrust(method = "POST", path = "/trust"): Promise<void> {
    const nonce = randomBytes(8).toString("hex");
    const sent = clock().least;
    const answer = await this.sidecar.ask(method, `/v1/holds/${this.id}${path}`, { nonce });
    if (answer["nonce"] === nonce) this.trust.count(sent, answer["trusted_for_ms"] ?? 0);
  }

  /** @internal */
  async begin(line: Json, id: string): Promise<void> {
    this.id = id;
    this.trust.open(line["trust_file"], id, BigInt(line["term"]));
    if (!this.trust.byFile) await this.askTrust();
    this.term = line["term"]; // From now on the answer may be yes.
    this.#watchTrust();
  }

  /** @internal */
  stop(why: string | undefined): void {
    this.why ??= why;
    clearTimeout(this.#watch);
    this.#stopping.abort(new Error(`"${this.lease}" has to end: ${this.why}`));
  }

  /** Aborts the signal when trust ends, should nobody have told us before. */
  #watchTrust(): void {
    if (this.signal.aborted) return;
    if (!this.trust.lasts()) return this.stop("cannot-tell");
    const left = Number((this.trust.until() - clock().least) / 1_000_000n);
    this.#watch = setTimeout(() => this.#watchTrust(), Math.max(left, 1));
    this.#watch.unref();
  }
}

/** A lease that this process holds. Made by `Sidecar.hold`; `await using` frees it at the end. */
export class Hold extends Held {
  #renewEvery = 1000;
  #renewing: NodeJS.Timeout | undefined;
  #stream: IncomingMessage | undefined;
  #over = false;

  /** @internal */
  static async elected(sidecar: Address, lease: string, options: HoldOptions): Promise<Hold> {
    const { signal, ...body } = options;
    const hold = new Hold(sidecar, lease);
    signal?.throwIfAborted();
    hold.#stream = await sidecar.send("POST", `/v1/leases/${encodeURIComponent(lease)}/hold`, body, 30_000);
    return new Promise((resolve, reject) => {
      const give = () => {
        const wasElected = hold.term > 0;
        hold.stop("released");
        if (!wasElected) hold.release().then(() => reject(signal?.reason), reject);
      };
      signal?.addEventListener("abort", give, { once: true });
      hold.#read(() => resolve(hold)).then(() => {
        signal?.removeEventListener("abort", give);
        reject(new Problem(410, { code: "lost", detail: `the hold of "${lease}" is over: ${hold.why}` }));
      }, reject);
    });
  }

  /** Says that all work under the hold has ended, and frees the lease. Call it after the work, not before. */
  async release(): Promise<void> {
    this.stop("released");
    this.trust.end();
    try {
      if (this.id && !this.#over) await this.sidecar.ask("DELETE", `/v1/holds/${this.id}`);
    } catch (error) {
      // It is free once the trust that was told has run out.
      if (!(error instanceof Problem || error instanceof Unreachable)) throw error;
    } finally {
      this.#finish();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #read(elected: () => void): Promise<void> {
    let ttl = 30_000;
    for await (const line of lines(this.#stream!, () => ttl)) {
      if (line["event"] === "waiting") {
        this.id = line["hold"];
        ttl = line["ttl_ms"]; // A sign of life comes three times as often.
        this.#renewEvery = line["renew_ms"];
        if (!this.sidecar.isUnix) this.#renew();
      } else if (line["event"] === "elected") {
        // If it can't be begun it goes unheard of, and comes back as lost.
        void this.begin(line, line["hold"]).then(() => {
          if (!this.trust.byFile) this.#renew();
          elected();
        }, () => {});
      } else if (line["event"] === "stopping") {
        this.stop(line["why"]);
      } else if (line["event"] === "lost") {
        this.why = line["why"];
        this.#over = true;
        this.trust.end();
        break;
      }
    }
    this.stop("cannot-tell"); // Without a stream nobody tells us to stop.
    this.#finish();
  }

  #renew(): void {
    this.#renewing ??= setInterval(() => {
      this.askTrust("PUT", "").catch((error: unknown) => {
        if (error instanceof Problem && error.code === "lost") this.stop(error.document["why"]);
      });
    }, this.#renewEvery);
  }

  #finish(): void {
    clearInterval(this.#renewing);
    this.#stream?.destroy();
  }
}
