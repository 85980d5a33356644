// What is known of the cluster, with the indices that views need. Views read it and never change it.

import { compare } from "./format.js";

// How many moves are remembered, and how many things that happened while the page was open.
const MOVES = 1000;

export const UNSOUND = new Set(["unassigned", "failing"]);
export const MOVING = new Set(["assigning", "revoking"]);
export const STATES = ["unassigned", "failing", "assigning", "revoking", "paused", "active", "done"];

export class Model {
  constructor() {
    // What the server says about itself, and whether all that it knows was read once.
    this.cluster = null;
    this.ready = false;
    // Why there is nothing to be known.
    this.refused = null;
    this.leases = new Map();
    this.members = new Map();
    this.duties = new Map();
    this.intents = [];
    this.moves = [];
    this.known = new Set();
    // Sorted, and made anew only if one came or went.
    this.leaseNames = [];
    this.memberIds = [];
    this.dutyNames = [];
    // Duties by the member that has them, and those that none has.
    this.carried = new Map();
    this.homeless = new Set();
    // How many duties of each member fail or don't run.
    this.unsound = new Map();
    this.counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    // When holders were last heard of, by the server's clock: the beginning of a gap, should they fall silent.
    this.heard = new Map();
    // The server's wall clock less this machine's, and when the server was last heard of by ours.
    this.skew = 0;
    this.lastBeat = 0;
    this.lastRead = 0;
    this.storeError = null;
    this.asOf = 0;
  }

  now() {
    return Date.now() + this.skew;
  }

  // Takes in an event of `GET /v1/events`, and says which parts of the model changed.
  take({ type, data }) {
    const told = JSON.parse(data);
    // Whatever comes is a sign of life.
    this.lastBeat = performance.now();
    switch (type) {
      case "state":
        this.#state(told);
        return ["leases", "members", "duties", "intents", "beat"];
      case "lease":
        this.#lease(told);
        return ["leases"];
      case "member":
        this.#member(told);
        return ["members"];
      case "duty":
        this.#duty(told);
        return ["duties"];
      case "duty-gone":
        this.#forgetDuty(told.duty);
        return ["duties"];
      case "move":
        this.addMoves([told]);
        return ["moves"];
      case "intents":
        this.intents = told.intents;
        return ["intents"];
      case "beat":
        this.#beat(told);
        return ["beat"];
      default:
        return [];
    }
  }

  #state(told) {
    this.seeLeases(told.leases, told.as_of_ms);
    this.seeMembers(told.members, told.as_of_ms);
    this.duties = new Map(told.duties.map((duty) => [duty.duty, duty]));
    this.dutyNames = [...this.duties.keys()].sort(compare);
    this.#countDuties();
    this.intents = told.intents;
    this.ready = true;
    this.#beat({ at_ms: told.as_of_ms, store: "answers" });
  }

  #beat(told) {
    this.skew = told.at_ms - Date.now();
    this.storeError = told.store === "answers" ? null : String(told.store);
    if (!this.storeError) this.asOf = told.at_ms;
  }

  // Takes in all leases, read at a time of the server's clock.
  seeLeases(leases, asOf) {
    const names = leases.length !== this.leases.size || leases.some((lease) => !this.leases.has(lease.lease));
    this.leases = new Map(leases.map((lease) => [lease.lease, lease]));
    for (const lease of leases) this.#hear(lease, asOf);
    if (names) this.leaseNames = [...this.leases.keys()].sort(compare);
    this.lastRead = performance.now();
  }

  #lease(lease) {
    if (!this.leases.has(lease.lease)) {
      this.leaseNames = insert(this.leaseNames, lease.lease);
    }
    this.leases.set(lease.lease, lease);
    this.#hear(lease, this.now());
  }

  #hear(lease, asOf) {
    lease.seen_ms = asOf;
    const { leader } = lease;
    if (!leader || leader.age_ms === null) return;
    const known = this.heard.get(lease.lease);
    const at = asOf - leader.age_ms;
    if (known?.term !== leader.term) this.heard.set(lease.lease, { term: leader.term, at, before: known ?? null });
    else known.at = Math.max(known.at, at);
    const kept = this.heard.get(lease.lease);
    if (kept.before) kept.before.before = null;
  }

  seeMembers(members, asOf) {
    for (const member of members) member.seen_ms = asOf;
    const same = members.length === this.members.size && members.every(({ id, node }) => this.members.get(id)?.node === node);
    this.members = new Map(members.map((member) => [member.id, member]));
    // Sorting names as people do is what takes time.
    if (!same) this.#orderMembers();
  }

  #member(member) {
    if (member.change === "gone") {
      this.members.delete(member.id);
      this.#orderMembers();
      return;
    }
    const known = this.members.has(member.id);
    member.seen_ms = this.now();
    this.members.set(member.id, member);
    if (!known) this.#orderMembers();
  }

  #orderMembers() {
    const all = [...this.members.values()];
    all.sort((a, b) => compare(a.node, b.node) || a.joined_ms - b.joined_ms || compare(a.id, b.id));
    this.memberIds = all.map((member) => member.id);
  }

  #countDuties() {
    for (const state of STATES) this.counts[state] = 0;
    this.carried.clear();
    this.homeless.clear();
    this.unsound.clear();
    for (const duty of this.duties.values()) this.#count(duty, 1);
  }

  #count(duty, by) {
    this.counts[duty.state] = (this.counts[duty.state] ?? 0) + by;
    let among = this.homeless;
    if (duty.member) {
      among = this.carried.get(duty.member);
      if (!among) this.carried.set(duty.member, (among = new Set()));
      if (UNSOUND.has(duty.state)) this.unsound.set(duty.member, (this.unsound.get(duty.member) ?? 0) + by);
    }
    if (by > 0) among.add(duty.duty);
    else among.delete(duty.duty);
  }

  #duty(duty) {
    const former = this.duties.get(duty.duty);
    if (former) this.#count(former, -1);
    else this.dutyNames = insert(this.dutyNames, duty.duty);
    this.duties.set(duty.duty, duty);
    this.#count(duty, 1);
  }

  #forgetDuty(name) {
    const former = this.duties.get(name);
    if (!former) return;
    this.#count(former, -1);
    this.duties.delete(name);
    this.dutyNames = this.dutyNames.filter((other) => other !== name);
  }

  // Adds moves, from history or as they happen, oldest first; one that is known already isn't added again.
  addMoves(moves) {
    for (const moved of moves) {
      const key = identity(moved);
      if (this.known.has(key)) continue;
      this.known.add(key);
      // Nearly always it is the latest.
      let at = this.moves.length;
      while (at > 0 && this.moves[at - 1].at_ms > moved.at_ms) at -= 1;
      this.moves.splice(at, 0, moved);
    }
    for (const old of this.moves.splice(0, this.moves.length - MOVES)) this.known.delete(identity(old));
  }

  // How long the holder may still be trusted as far as is known, in milliseconds; null if it isn't known.
  trustLeft(lease) {
    const { leader } = lease;
    if (!leader || leader.age_ms === null) return null;
    return leader.ttl_ms - this.ageOf(leader, lease.seen_ms);
  }

  // How long ago a member or leader was heard of, counted on from when that was read.
  ageOf(one, seen) {
    return one.age_ms === null ? null : one.age_ms + Math.max(0, this.now() - seen);
  }

  // The members that take part or did a moment ago, by name.
  live() {
    return this.memberIds.map((id) => this.members.get(id)).filter((member) => member.state === "alive");
  }

  nodeNames() {
    return [...new Set(this.live().map((member) => member.node))];
  }

  frozen() {
    return this.intents.some((intent) => intent.kind === "freeze" && intent.state !== "done" && intent.state !== "obsolete");
  }
}

// What tells one move from another.
export function identity(moved) {
  return `${moved.at_ms} ${moved.duty} ${moved.to}`;
}

// A sorted array with one more.
function insert(sorted, one) {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compare(sorted[middle], one) < 0) from = middle + 1;
    else to = middle;
  }
  return [...sorted.slice(0, from), one, ...sorted.slice(from)];
}
