// Server-sent events over fetch: the browser's own reader of them can't send a token.

import { Problem, send } from "./api.js";

const LONGEST_PAUSE = 5000;

// Nothing for so long, where a beat comes every second, means that the connection is dead.
const SILENCE = 10_000;

// Reads `GET /v1/events` for as long as the page is open, and begins again where it stopped. `take(events)` gets
// all that came at once, `refused(problem)` is asked what to do when the server says no: it resolves when trying
// again makes sense. Call the function that is returned to stop.
export function follow(take, refused) {
  const ending = new AbortController();
  run(take, refused, ending.signal);
  return () => ending.abort();
}

async function run(take, refused, ending) {
  let last = null;
  let pause = 250;
  while (!ending.aborted) {
    const connection = new AbortController();
    const stop = () => connection.abort();
    ending.addEventListener("abort", stop);
    try {
      const headers = { accept: "text/event-stream" };
      if (last !== null) headers["last-event-id"] = last;
      const response = await send("GET", "v1/events", { headers, signal: connection.signal });
      await readAll(response.body, connection, (events) => {
        pause = 250;
        last = events.findLast((event) => event.id !== null)?.id ?? last;
        take(events);
      });
    } catch (error) {
      if (error instanceof Problem && !ending.aborted) await refused(error);
    } finally {
      ending.removeEventListener("abort", stop);
      connection.abort();
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function readAll(body, connection, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new Parser();
  for (;;) {
    const watch = setTimeout(() => connection.abort(), SILENCE);
    let chunk;
    try {
      chunk = await reader.read();
    } finally {
      clearTimeout(watch);
    }
    if (chunk.done) return;
    const events = parser.push(chunk.value);
    if (events.length > 0) take(events);
  }
}

// Cuts text into events, as the standard has it.
export class Parser {
  // Lines that aren't whole yet are kept in pieces: a state of megabytes comes in many of them.
  #pieces = [];
  #event = { id: null, type: "message", data: [] };

  push(text) {
    const events = [];
    if (!text.includes("\n")) {
      this.#pieces.push(text);
      return events;
    }
    const lines = (this.#pieces.join("") + text).split("\n");
    this.#pieces = [lines.pop()];
    for (const line of lines) {
      const event = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) events.push(event);
    }
    return events;
  }

  #line(line) {
    if (line === "") {
      const { id, type, data } = this.#event;
      this.#event = { id: null, type: "message", data: [] };
      return data.length > 0 ? { id, type, data: data.join("\n") } : null;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.#event.id = value;
    else if (field === "event") this.#event.type = value;
    else if (field === "data") this.#event.data.push(value);
    return null;
  }
}
