// Leases: a list of all, and one in detail.

import { showActions, steerLease } from "./actions.js";
import { empty, fill, h, name, setAttribute, setClass, setText } from "./dom.js";
import { date, route, seconds, span } from "./format.js";
import { freeSince, isSlot, standing } from "./health.js";
import { Timeline } from "./timeline.js";
import { Virtual } from "./virtual.js";

const WORDS = { led: "led", silent: "not heard of", free: "free", unreadable: "unreadable" };

export class Leases {
  constructor({ model, query, search }) {
    this.model = model;
    this.filter = (query.q ?? "").toLowerCase();
    this.table = new Virtual({
      height: 44,
      label: "Leases",
      columns: [["Lease"], ["Holder"], ["Term", "num"], ["For", "num"], ["Trust left", "trust-cell"]],
      key: (lease) => lease,
      row,
      show: (element, lease) => this.#show(element, lease),
    });
    this.table.element.classList.add("leases-table");
    this.none = h("div");
    this.search = search("Find a lease or a holder", this.filter, (text) => {
      this.filter = text.toLowerCase();
      this.update();
    });
    this.element = h("div", { class: "panel" }, h("div", { class: "tools" }, h("h1", { text: "Leases" }), this.search), this.none, this.table.element);
  }

  update() {
    const { model, filter } = this;
    const matches = (lease) => {
      return lease.toLowerCase().includes(filter) || (model.leases.get(lease).leader?.node ?? "").toLowerCase().includes(filter);
    };
    const shown = filter ? model.leaseNames.filter(matches) : model.leaseNames;
    this.table.element.hidden = shown.length === 0;
    fill(
      this.none,
      shown.length === 0 && (filter ? empty("No lease and no holder matches.") : empty("There are no leases yet.", "One appears here when a node first takes it.")),
    );
    this.table.setItems(shown);
  }

  tick() {
    this.table.refresh();
  }

  close() {
    this.table.close();
  }

  #show(row, leaseName) {
    const lease = this.model.leases.get(leaseName);
    if (!lease) return;
    const { parts } = row;
    const stands = standing(lease, this.model);
    setText(parts.link, leaseName);
    setAttribute(parts.link, "href", route("leases", leaseName));
    setAttribute(parts.link, "title", leaseName);
    setClass(parts.dot, `dot ${stands === "free" && isSlot(lease) ? "note" : stands}`);
    setText(parts.holder, lease.leader?.node ?? WORDS[stands]);
    setClass(parts.holder, lease.leader ? "name" : "dim");
    setText(parts.term, lease.term);
    const since = lease.leader ? lease.leader.since_ms : freeSince(lease);
    setText(parts.since, since ? span(this.model.now() - since) : "–");
    showTrust(parts.trust, lease, this.model);
  }
}

function row() {
  const parts = {
    dot: h("span", { class: "dot", "aria-hidden": "true" }),
    link: h("a", { class: "name", "data-focus": "" }),
    holder: h("bdi", { class: "name" }),
    term: h("span", { class: "num", role: "cell" }),
    since: h("span", { class: "num", role: "cell" }),
    trust: gauge(),
  };
  const made = h(
    "div",
    { class: "v-grid" },
    h("span", { role: "rowheader", class: "with-dot" }, parts.dot, h("bdi", {}, parts.link)),
    h("span", { role: "cell" }, parts.holder),
    parts.term,
    parts.since,
    h("span", { role: "cell", class: "trust-cell" }, parts.trust),
  );
  made.parts = parts;
  return made;
}

// A bar that empties, and what is left in words.
export function gauge() {
  return h("span", { class: "gauge" }, h("span", { class: "gauge-bar" }, h("span", { class: "gauge-fill" })), h("span", { class: "gauge-text num" }));
}

export function showGauge(element, part, text, level) {
  setClass(element, `gauge ${level}`);
  element.firstElementChild.firstElementChild.style.width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  setText(element.lastElementChild, text);
}

function showTrust(element, lease, model) {
  const left = model.trustLeft(lease);
  if (left === null) {
    showGauge(element, 0, lease.leader ? "not known" : "–", "");
    return;
  }
  const part = left / lease.leader.ttl_ms;
  const level = left < 0 || lease.leader.state !== "alive" ? "bad" : part < 0.3 ? "warn" : "ok";
  showGauge(element, part, left < 0 ? "over" : seconds(left), level);
}

// One lease: who has it, what it was, and what can be asked of its holder.
export class LeaseDetail {
  constructor({ model, id, heading }) {
    Object.assign(this, { model, lease: id });
    this.timeline = new Timeline(model, id);
    this.trust = gauge();
    this.body = h("div");
    this.changes = h("div");
    this.acts = h("div");
    this.element = h("div", {}, heading("Lease", id), this.body, this.acts, this.timeline.element, h("h3", { text: "Changes of hands" }), this.changes);
  }

  update(changed) {
    const lease = this.model.leases.get(this.lease);
    if (!lease) {
      fill(this.body, empty("There is no lease of that name.", "It may never have been taken, or belongs to another cluster."));
      this.timeline.element.hidden = true;
      return;
    }
    this.timeline.element.hidden = false;
    const seen = JSON.stringify([this.model.cluster?.read_only, lease.cursor, lease.leader?.state, lease.unreadable, standing(lease, this.model)]);
    if (seen !== this.seen) {
      this.seen = seen;
      this.#facts(lease);
      fill(this.changes, history(lease));
      showActions(this.acts, this.model, steerLease(lease, this.model));
    }
    if (changed.has("leases")) this.timeline.update();
    this.tick();
  }

  #facts(lease) {
    const { leader } = lease;
    const stands = standing(lease, this.model);
    const facts = [["State", h("span", { class: "with-dot" }, h("span", { class: `dot ${stands}` }), WORDS[stands])]];
    if (lease.unreadable) facts.push(["Record", `${lease.unreadable.key}: ${lease.unreadable.reason}`]);
    facts.push(["Term", h("span", { class: "num", text: lease.term })]);
    if (leader) {
      facts.push(["Holder", h("a", { href: route("nodes", leader.member) }, name(leader.node))]);
      facts.push(["Since", leader.since_ms ? date(leader.since_ms, this.model.now()) : "not known"]);
      facts.push(["Trust left", this.trust]);
      facts.push(["Ttl", span(leader.ttl_ms)]);
      if (leader.address) facts.push(["Address", name(leader.address)]);
      if (leader.payload) facts.push(["Payload", name(leader.payload, { class: "name payload" })]);
    }
    fill(this.body, table(facts));
  }

  tick() {
    const lease = this.model.leases.get(this.lease);
    if (!lease) return;
    if (lease.leader) showTrust(this.trust, lease, this.model);
    this.timeline.tick();
  }

  close() {
    this.timeline.close();
  }
}

// Names and values, one a line.
export function table(facts) {
  return h("dl", { class: "facts-table" }, facts.map(([term, value]) => [h("dt", { text: term }), h("dd", {}, value)]));
}

const HOW = { taken: "took it, it was free", inherited: "took it over from one that left", expired: "took it over from one that fell silent", evicted: "took it over from one that was evicted", freed: "gave it up" };

function history(lease) {
  if (lease.changes.length === 0) return h("p", { class: "dim", text: "None is remembered." });
  const rows = lease.changes.toReversed().map((change) =>
    h(
      "li",
      {},
      h("span", { class: "num dim", text: date(change.at_ms) }),
      h("span", {}, name(change.node), ` ${HOW[change.kind] ?? change.kind} `, h("span", { class: "dim", text: `term ${change.term}` })),
    ),
  );
  return h("ol", { class: "log" }, rows);
}
