/** HTTP to the sidecar, over TCP or a Unix socket. */
import * as http from "node:http";
import * as https from "node:https";

export type Json = Record<string, any>;

/** The sidecar didn't answer. Whether it did what was asked isn't known. */
export class Unreachable extends Error {}

/** The sidecar refused. `code` is what programs go by. */
export class Problem extends Error {
  readonly code: string;
  constructor(readonly status: number, readonly document: Json) {
    super(document["detail"] ?? document["title"] ?? `status ${status}`);
    this.code = String(document["code"] ?? "");
  }
}

export interface AddressOptions {
  /** A bearer token, where the sidecar asks for one. */
  token?: string;
  /** For `https:`: certificates, as `https.request` takes them. */
  tls?: Pick<https.RequestOptions, "ca" | "cert" | "key">;
}

/** Where the sidecar is: `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`, with a prefix if it has one. */
export class Address {
  readonly isUnix: boolean;
  readonly #base: https.RequestOptions;
  readonly #send: typeof http.request;

  constructor(url: string, private readonly options: AddressOptions = {}) {
    this.isUnix = url.startsWith("unix:") && url.length > 5;
    const parts = this.isUnix ? undefined : URL.parse?.(url) ?? tryUrl(url);
    if (!this.isUnix && parts?.protocol !== "http:" && parts?.protocol !== "https:") {
      throw new TypeError(`"${url}" is not an address: use unix:PATH, http://HOST:PORT or https://HOST:PORT`);
    }
    this.#base = this.isUnix
      ? { socketPath: url.slice(5), path: "" }
      : { host: parts!.hostname.replace(/^\[|\]$/g, ""), port: parts!.port, path: parts!.pathname.replace(/\/$/, ""), ...options.tls };
    this.#send = parts?.protocol === "https:" ? https.request : http.request;
  }

  /** Sends one request on a connection of its own, and waits for the head of the answer. */
  send(method: string, path: string, body?: unknown, patience = 10_000): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers: http.OutgoingHttpHeaders = { accept: "application/json, application/x-ndjson" };
      if (this.options.token) headers["authorization"] = `Bearer ${this.options.token}`;
      const text = body === undefined ? "" : JSON.stringify(body);
      if (text) Object.assign(headers, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
      const request = this.#send({ ...this.#base, path: this.#base.path + path, method, headers, agent: false });
      const timer = setTimeout(() => request.destroy(new Error("no answer in time")), patience);
      request.on("error", (error) => reject(new Unreachable(`${method} ${path}: ${error.message}`)));
      request.on("close", () => clearTimeout(timer));
      request.on("response", (response) => {
        clearTimeout(timer);
        if ((response.statusCode ?? 500) < 400) return resolve(response);
        read(response, patience).then((document) => reject(new Problem(response.statusCode ?? 500, document)), reject);
      });
      request.end(text);
    });
  }

  /** Sends one request, and gives back the document that answers it. */
  async ask(method: string, path: string, body?: unknown, patience = 10_000): Promise<Json> {
    return read(await this.send(method, path, body, patience), patience);
  }
}

async function read(response: http.IncomingMessage, patience: number): Promise<Json> {
  const timer = setTimeout(() => response.destroy(new Error("no answer in time")), patience);
  try {
    let text = "";
    for await (const part of response.setEncoding("utf8")) text += part;
    return text ? JSON.parse(text) : {};
  } catch (error) {
    throw new Unreachable(`the answer can't be read: ${(error as Error).message}`);
  } finally {
    clearTimeout(timer);
  }
}

/** The lines of a stream, until it ends, breaks, or is silent for too long. */
export async function* lines(stream: http.IncomingMessage, patience: () => number): AsyncGenerator<Json> {
  const wait = () => setTimeout(() => stream.destroy(), patience());
  let timer = wait();
  let rest = "";
  try {
    for await (const part of stream.setEncoding("utf8")) {
      clearTimeout(timer);
      timer = wait();
      const whole = (rest + part).split("\n");
      rest = whole.pop() ?? "";
      for (const line of whole) yield JSON.parse(line);
    }
  } catch {
    // A stream that breaks has ended: what that means is for the reader to say.
  } finally {
    clearTimeout(timer);
    stream.destroy();
  }
}

function tryUrl(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}
