// Who led a lease when, as bands of time: what its last changes of hands say, and no more than that.
//
// A term that was freed has an end that is written down. Of any other it is only known that it was over when the
// next one began: the time since its holder was last heard of, or its ttl, is shown as doubtful.

import { standing } from "./health.js";
import { date, span } from "./format.js";

const TTL = 15_000;

// Bands are `{kind, from, to, node, term, text}`, oldest first, where kind is `led`, `gap`, `doubt` or, for what
// nobody has had since it was given up, `free`.
export function bands(lease, model) {
  const now = model.now();
  const made = [];
  let open = null;
  let free = null;
  for (const change of lease.changes) {
    if (change.kind === "freed") {
      if (open) made.push(led(open, change.at_ms, "gave it up"));
      [open, free] = [null, { from: change.at_ms, node: change.node }];
      continue;
    }
    if (open) made.push(...passed(open, change, lease, model));
    else if (free) made.push(gap(free.from, change.at_ms, `${free.node} gave it up, ${change.node} took it ${span(change.at_ms - free.from)} later.`));
    [open, free] = [{ from: change.at_ms, node: change.node, term: change.term, kind: change.kind }, null];
  }
  made.push(...present(lease, model, open, free, now));
  return made.filter((band) => band.to >= band.from);
}

function led({ from, node, term }, to, how) {
  const text = `${node} led in term ${term} for ${span(to - from)}, from ${date(from)}; it ${how}.`;
  return { kind: "led", from, to, node, term, text };
}

function gap(from, to, text, kind = "gap") {
  return { kind, from, to, node: null, term: null, text: `Nobody led: ${text}` };
}

// A term that ended without being freed, and the doubtful time before the next one.
function passed(open, change, lease, model) {
  const at = change.at_ms;
  if (change.kind === "taken" || change.kind === "inherited") {
    return [led(open, at, "left")];
  }
  const how = change.kind === "expired" ? "fell silent" : "was evicted";
  const heard = model.heard.get(lease.lease);
  const known = [heard, heard?.before].find((one) => one?.term === open.term);
  const ttl = lease.leader?.ttl_ms ?? TTL;
  const from = Math.max(open.from, Math.min(at, known ? known.at : at - ttl));
  const since = known ? `last heard from at ${date(known.at)}` : `when exactly isn't known`;
  const text = `${open.node} ${how} (${since}), ${change.node} took over. That is at most ${span(at - from)}.`;
  return [led(open, from, how), gap(from, at, text, known ? "gap" : "doubt")];
}

// What goes on now.
function present(lease, model, open, free, now) {
  const stands = standing(lease, model);
  if (stands === "led") {
    const { leader } = lease;
    const from = open?.from ?? leader.since_ms ?? now;
    const text = `${leader.node} leads in term ${leader.term} since ${date(from)}, for ${span(now - from)} so far.`;
    return [{ kind: "led", from, to: now, node: leader.node, term: leader.term, text, open: true }];
  }
  if (stands === "silent") {
    const { leader } = lease;
    const begin = open ?? { from: leader.since_ms ?? now, node: leader.node, term: leader.term };
    const heard = Math.max(begin.from, model.heard.get(lease.lease)?.at ?? now);
    const text = `${leader.node} wasn't heard of since ${date(heard)}, for ${span(now - heard)}, and nobody has taken over.`;
    return [led(begin, heard, "fell silent"), { ...gap(heard, now, text), open: true }];
  }
  if (free) {
    const text = `${free.node} gave it up at ${date(free.from)}, ${span(now - free.from)} ago.`;
    return [{ ...gap(free.from, now, text), kind: "free", open: true }];
  }
  return open ? ended(open, lease, model, now) : [];
}

// A term that was neither freed nor followed by another: its member left, or was closed by others.
function ended(open, lease, model, now) {
  const heard = model.heard.get(lease.lease);
  if (heard?.term !== open.term) {
    const text = `${open.node} led from ${date(open.from)}, until when isn't known, and nobody has taken over.`;
    return [{ ...gap(open.from, now, text, "doubt"), open: true }];
  }
  const at = Math.max(open.from, heard.at);
  const text = `${open.node} is gone, last heard of at ${date(at)}, and nobody has taken over for ${span(now - at)}.`;
  return [led(open, at, "is gone"), { ...gap(at, now, text), open: true }];
}

// When the first band of all begins.
export function earliest(model) {
  let first = model.now();
  for (const lease of model.leases.values()) {
    const change = lease.changes[0];
    if (change && change.at_ms > 0) first = Math.min(first, change.at_ms);
  }
  for (const moved of model.moves) first = Math.min(first, moved.at_ms || first);
  return first;
}
