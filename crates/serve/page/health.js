// Is everything led and running? The first line's answer, and what needs attention.

import { MOVING } from "./model.js";
import { count, span } from "./format.js";

// A page that has heard nothing for so long doesn't know how things stand.
export const STALE = 3500;

export const CLUSTER_LEASE = "incumbent/leader";

// How a lease stands: `led`, `silent` (its holder isn't heard of), `free` or `unreadable`.
export function standing(lease, model) {
  if (lease.unreadable) return "unreadable";
  if (!lease.leader) return "free";
  const left = model.trustLeft(lease);
  return lease.leader.state !== "alive" || lease.leader.overdue || (left !== null && left < 0) ? "silent" : "led";
}

// A slot that nobody needs is free, and nothing is wrong with that.
export function isSlot(lease) {
  return lease.lease.startsWith("incumbent/slot/");
}

// Since when nobody leads, if that was written down.
export function freeSince(lease) {
  const last = lease.changes.at(-1);
  return last?.kind === "freed" ? last.at_ms : null;
}

// What is known, judged: `level` is `ok`, `busy`, `warn` or `bad`; `lines` are what needs attention.
export function judge(model) {
  const lines = [];
  const tally = { led: 0, leases: 0, least: null, leastOf: null, since: 0 };
  for (const name of model.leaseNames) judgeLease(model.leases.get(name), model, tally, lines);
  judgeMembers(model, lines);
  judgeDuties(model, lines);
  if (model.frozen()) lines.push({ level: "note", text: "Frozen: nothing moves just to balance the load.", link: "#/log" });
  const level = ["bad", "warn", "busy"].find((level) => lines.some((line) => line.level === level)) ?? "ok";
  const order = ["bad", "warn", "busy", "note"];
  lines.sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
  return { ...tally, level, lines };
}

function judgeLease(lease, model, tally, lines) {
  const link = `#/leases/${encodeURIComponent(lease.lease)}`;
  const stands = standing(lease, model);
  if (stands === "free" && (isSlot(lease) || lease.term === 0)) return;
  tally.leases += 1;
  if (stands === "led") {
    tally.led += 1;
    tally.since = Math.max(tally.since, lease.leader.since_ms ?? 0);
    const left = model.trustLeft(lease);
    if (left !== null && (tally.least === null || left < tally.least)) [tally.least, tally.leastOf] = [left, lease];
    return;
  }
  const name = lease.lease;
  if (stands === "unreadable") {
    lines.push({ level: "bad", brief: `who leads ${name} isn't known`, text: `Who leads ${name} isn't known: its record can't be read.`, link });
  } else if (stands === "silent") {
    const age = span(model.ageOf(lease.leader, lease.seen_ms));
    const how = lease.leader.state === "alive" ? `wasn't heard of for ${age}` : `has ${word(lease.leader.state)}`;
    lines.push({ level: "bad", brief: `nobody leads ${name}`, text: `Nobody leads ${name}: ${lease.leader.node} ${how}.`, link });
  } else {
    const since = freeSince(lease);
    const by = lease.changes.at(-1)?.node;
    const text = since ? `${name} is free: ${by} gave it up ${span(model.now() - since)} ago.` : `Nobody leads ${name}.`;
    lines.push({ level: name === CLUSTER_LEASE ? "bad" : "warn", brief: `${name} is free`, text, link });
  }
}

function word(state) {
  return state === "evicted" ? "been evicted" : state;
}

function judgeMembers(model, lines) {
  const overdue = [];
  for (const member of model.members.values()) {
    if (member.state === "alive" && isOverdue(member, model)) overdue.push(member);
  }
  if (overdue.length === 1) {
    const [member] = overdue;
    const text = `${member.node} wasn't heard of for ${span(model.ageOf(member, member.seen_ms))}.`;
    lines.push({ level: "warn", brief: `${member.node} is silent`, text, link: `#/nodes/${encodeURIComponent(member.id)}` });
  } else if (overdue.length > 1) {
    lines.push({ level: "warn", brief: `${count(overdue.length, "node")} are silent`, text: `${count(overdue.length, "node")} weren't heard of for their ttl.`, link: "#/nodes?state=overdue" });
  }
}

export function isOverdue(member, model) {
  const age = model.ageOf(member, member.seen_ms);
  return member.state === "alive" && (member.overdue || (age !== null && member.ttl_ms !== null && age > member.ttl_ms));
}

function judgeDuties(model, lines) {
  const { counts } = model;
  if (counts.unassigned > 0) {
    const brief = `${count(counts.unassigned, "duty runs", "duties run")} nowhere`;
    lines.push({ level: "bad", brief, text: `${brief}${example(model, "unassigned")}.`, link: "#/duties?state=unassigned" });
  }
  if (counts.failing > 0) {
    const brief = `${count(counts.failing, "duty fails", "duties fail")}`;
    lines.push({ level: "bad", brief, text: `${brief}${example(model, "failing")}.`, link: "#/duties?state=failing" });
  }
  const moving = [...MOVING].reduce((sum, state) => sum + counts[state], 0);
  if (moving > 0) {
    lines.push({ level: "busy", text: `${count(moving, "duty is", "duties are")} on the way to another node.`, link: "#/duties?state=assigning" });
  }
  if (counts.paused > 0) {
    lines.push({ level: "note", text: `${count(counts.paused, "duty is", "duties are")} paused by an operator.`, link: "#/duties?state=paused" });
  }
}

// One of them with its reason, where there is only one.
function example(model, state) {
  if (model.counts[state] !== 1) return "";
  for (const duty of model.duties.values()) {
    if (duty.state === state) return `: ${duty.duty}, ${duty.error ?? duty.reason ?? "no reason is known"}`;
  }
  return "";
}
