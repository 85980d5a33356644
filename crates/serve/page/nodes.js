// Nodes: all at a glance, a list, and one in detail.

import { showActions, steerNode } from "./actions.js";
import { dutySquares } from "./duties.js";
import { empty, fill, h, list, name, setAttribute, setClass, setText } from "./dom.js";
import { amount, compare, count, date, route, short, span } from "./format.js";
import { isOverdue } from "./health.js";
import { gauge, showGauge, table } from "./leases.js";
import { Virtual } from "./virtual.js";

// Where there is no label of a zone, nodes are one group.
const ZONES = ["zone", "topology.kubernetes.io/zone", "az", "region", "rack"];

export function zoneOf(member) {
  for (const label of ZONES) if (member.labels?.[label]) return member.labels[label];
  return "";
}

export function nodeState(member, model) {
  if (member.state !== "alive") return member.state;
  if (isOverdue(member, model)) return "overdue";
  if (member.drained) return "drained";
  return member.cordoned ? "cordoned" : "alive";
}

function versions(member) {
  return [...new Set(Object.values(member.families ?? {}).flat())].sort(compare);
}

// A small square for each node, by zone: the fuller the darker. Arrow keys go from one to the next.
export class NodeMap {
  constructor(model) {
    this.model = model;
    this.element = h("div", { class: "node-map", onkeydown: (event) => this.#press(event) });
  }

  update() {
    const { model } = this;
    const zones = new Map();
    let most = 1;
    for (const member of model.live()) {
      const zone = zoneOf(member);
      if (!zones.has(zone)) zones.set(zone, []);
      zones.get(zone).push(member);
      most = Math.max(most, this.#carries(member));
    }
    const sorted = [...zones].sort(([a], [b]) => compare(a, b));
    const crowd = model.members.size > 24;
    setClass(this.element, crowd ? "node-map crowd" : "node-map");
    list(
      this.element,
      sorted,
      ([zone]) => zone,
      ([zone]) => h("div", { class: "zone", role: "group", "aria-label": zone ? `Zone ${zone}` : "Nodes" }, h("span", { class: "zone-name dim" }), h("div", { class: "zone-nodes" })),
      (element, [zone, members]) => {
        setText(element.firstElementChild, sorted.length > 1 || zone ? `${zone || "no zone"} · ${members.length}` : "");
        list(element.lastElementChild, members, (member) => member.id, cell, (link, member) => this.#show(link, member, most));
      },
    );
    const links = this.element.getElementsByTagName("a");
    if (links.length && !this.element.querySelector('a[tabindex="0"]')) links[0].setAttribute("tabindex", "0");
  }

  #carries(member) {
    return this.model.carried.get(member.id)?.size ?? 0;
  }

  #show(link, member, most) {
    const carries = this.#carries(member);
    const state = nodeState(member, this.model);
    const unsound = this.model.unsound.get(member.id) > 0;
    const full = carries === 0 ? 0 : Math.max(1, Math.ceil((carries / most) * 5));
    // A thousand of these are looked at for each change, and few of them differ.
    const seen = `${carries} ${full} ${state} ${unsound} ${member.node}`;
    if (link.seen === seen) return;
    link.seen = seen;
    setClass(link, `node-cell full-${full} ${state}${unsound ? " unsound" : ""}`);
    setAttribute(link, "title", `${member.node}: ${count(carries, "duty", "duties")}, ${state}`);
    setText(link.firstElementChild, member.node);
    setText(link.lastElementChild, carries);
  }

  #press(event) {
    const links = [...this.element.getElementsByTagName("a")];
    const at = links.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: links.length - 1 }[event.key];
    if (at < 0 || to === undefined || !links[to]) return;
    event.preventDefault();
    links[at].setAttribute("tabindex", "-1");
    links[to].setAttribute("tabindex", "0");
    links[to].focus();
  }
}

function cell(member) {
  return h("a", { href: route("nodes", member.id), tabindex: "-1" }, h("bdi", { class: "cell-name" }), h("span", { class: "cell-count num" }));
}

export class Nodes {
  constructor({ model, query, search }) {
    this.model = model;
    this.filter = (query.q ?? "").toLowerCase();
    this.state = query.state ?? "";
    this.table = new Virtual({
      height: 44,
      label: "Nodes",
      columns: [["Node"], ["Zone"], ["Version"], ["Labels"], ["Duties", "num"], ["Load", "num"], ["Beat", "trust-cell"]],
      key: (id) => id,
      row,
      show: (element, id) => this.#show(element, id),
    });
    this.table.element.classList.add("nodes-table");
    this.none = h("div");
    this.summary = h("span", { class: "dim" });
    this.search = search("Find by name, zone, version or label", this.filter, (text) => {
      this.filter = text.toLowerCase();
      this.state = "";
      this.update();
    });
    this.element = h("div", { class: "panel" }, h("div", { class: "tools" }, h("h1", { text: "Nodes" }), this.search, this.summary), this.none, this.table.element);
  }

  update() {
    const { model, filter, state } = this;
    const shown = model.memberIds.filter((id) => {
      const member = model.members.get(id);
      if (state && nodeState(member, model) !== state) return false;
      return !filter || words(member).includes(filter);
    });
    const live = model.live().length;
    const gone = model.members.size - live;
    setText(this.summary, `${count(live, "node")} alive${gone ? `, ${gone} gone lately` : ""}`);
    this.table.element.hidden = shown.length === 0;
    const nothing = filter || state ? empty("No node matches.") : empty("There are no nodes.", "One appears here when it joins the cluster.");
    fill(this.none, shown.length === 0 && nothing);
    this.table.setItems(shown);
  }

  tick() {
    this.table.refresh();
  }

  close() {
    this.table.close();
  }

  #show(row, id) {
    const member = this.model.members.get(id);
    if (!member) return;
    const { parts } = row;
    const state = nodeState(member, this.model);
    setText(parts.link, member.node);
    setAttribute(parts.link, "href", route("nodes", id));
    setClass(parts.dot, `dot ${state}`);
    setText(parts.state, state === "alive" ? "" : state);
    setClass(parts.state, `tag ${state}`);
    parts.state.hidden = state === "alive";
    setText(parts.zone, zoneOf(member) || "–");
    setText(parts.version, versions(member).join(", ") || "–");
    setText(parts.labels, labels(member));
    setText(parts.duties, this.model.carried.get(id)?.size ?? 0);
    setText(parts.load, member.capacity ? `${amount(member.load)} / ${amount(member.capacity)}` : amount(member.load));
    showBeat(parts.beat, member, this.model);
  }
}

function words(member) {
  const labels = Object.entries(member.labels ?? {}).map(([label, value]) => `${label}=${value}`);
  return [member.node, member.id, member.address ?? "", member.state, ...versions(member), ...labels].join(" ").toLowerCase();
}

function labels(member) {
  const zone = ZONES.find((label) => member.labels?.[label]);
  const others = Object.entries(member.labels ?? {}).filter(([label]) => label !== zone);
  return others.map(([label, value]) => `${label}=${value}`).join(" ") || "–";
}

function showBeat(element, member, model) {
  const age = model.ageOf(member, member.seen_ms);
  if (member.state !== "alive" || age === null || !member.ttl_ms) {
    showGauge(element, 0, member.state === "alive" ? "not known" : "–", "");
    return;
  }
  const left = 1 - age / member.ttl_ms;
  showGauge(element, left, `${span(age)} ago`, left < 0 ? "bad" : left < 0.3 ? "warn" : "ok");
}

function row() {
  const cell = (className) => h("span", { role: "cell", class: className });
  const parts = {
    dot: h("span", { class: "dot", "aria-hidden": "true" }),
    link: h("a", { class: "name", "data-focus": "" }),
    state: h("span", { class: "tag" }),
    zone: cell("cut"),
    version: cell("cut"),
    labels: cell("cut dim"),
    duties: cell("num"),
    load: cell("num"),
    beat: gauge(),
  };
  const { dot, link, state, beat, ...cells } = parts;
  const head = h("span", { role: "rowheader", class: "with-dot" }, dot, h("bdi", {}, link), state);
  const made = h("div", { class: "v-grid" }, head, Object.values(cells), h("span", { role: "cell", class: "trust-cell" }, beat));
  made.parts = parts;
  return made;
}

// One member: what it is, what it carries, and what can be asked of it.
export class NodeDetail {
  constructor({ model, id, heading }) {
    this.model = model;
    // A link may name the node instead of the member: then it is about whoever is alive under that name.
    this.wanted = id;
    this.heading = h("div", {}, heading("Node", this.#member()?.node ?? id));
    this.body = h("div");
    this.acts = h("div");
    this.leads = h("div");
    this.squares = h("div", { class: "squares wrap" });
    this.title = h("h3");
    this.beat = gauge();
    this.element = h("div", {}, this.heading, this.body, this.acts, this.leads, this.title, this.squares);
  }

  #member() {
    const { members, memberIds } = this.model;
    const named = memberIds.map((id) => members.get(id)).filter((member) => member.node === this.wanted);
    return members.get(this.wanted) ?? named.find((member) => member.state === "alive") ?? named.at(-1);
  }

  update() {
    const member = this.#member();
    if (!member) {
      fill(this.body, empty("There is no such node any more.", "Nodes that are gone are forgotten after a minute or two."));
      showActions(this.acts, this.model, []);
      fill(this.squares);
      this.title.textContent = "";
      return;
    }
    const state = nodeState(member, this.model);
    const { age_ms: _age, seen_ms: _seen, load, duties: _duties, ...rest } = member;
    const seen = JSON.stringify([this.model.cluster?.read_only, rest, load, state, this.model.frozen()]);
    if (seen !== this.seen) {
      this.seen = seen;
      this.#facts(member, state);
      showActions(this.acts, this.model, steerNode(member, this.model));
    }
    const carried = [...(this.model.carried.get(member.id) ?? [])].sort(compare);
    setText(this.title, carried.length ? `Carries ${count(carried.length, "duty", "duties")}` : "Carries no duties");
    dutySquares(this.squares, carried, this.model, { names: carried.length <= 60 });
    this.#leads(member);
    this.tick();
  }

  #leads(member) {
    const led = this.model.leaseNames.filter((lease) => this.model.leases.get(lease).leader?.member === member.id);
    const key = led.join("\n");
    if (key === this.led) return;
    this.led = key;
    const links = led.slice(0, 20).map((lease) => h("a", { class: "pill", href: route("leases", lease) }, name(lease)));
    fill(this.leads, led.length > 0 && [h("h3", { text: `Holds ${count(led.length, "lease")}` }), h("p", { class: "pills" }, links)]);
  }

  #facts(member, state) {
    const facts = [["State", h("span", { class: "with-dot" }, h("span", { class: `dot ${state}` }), state)]];
    facts.push(["Beat", this.beat]);
    if (zoneOf(member)) facts.push(["Zone", name(zoneOf(member))]);
    if (member.address) facts.push(["Address", name(member.address)]);
    const families = Object.entries(member.families ?? {});
    if (families.length) facts.push(["Serves", families.map(([family, versions]) => h("span", { class: "pill" }, name([family, ...versions].join(" "))))]);
    const shown = Object.entries(member.labels ?? {});
    if (shown.length) facts.push(["Labels", shown.map(([label, value]) => h("span", { class: "pill" }, name(`${label}=${value}`)))]);
    const capacity = member.capacity ? ` of ${amount(member.capacity)}` : "";
    facts.push(["Load", `${amount(member.load)}${capacity}${member.max_duties ? `, at most ${member.max_duties} duties` : ""}`]);
    facts.push(["Joined", date(member.joined_ms, this.model.now())]);
    if (member.ttl_ms) facts.push(["Ttl", span(member.ttl_ms)]);
    if (member.host) facts.push(["Process", name(`${member.host.pid} on ${member.host.host}`)]);
    facts.push(["Member", h("code", { title: member.id, text: short(member.id) })]);
    fill(this.body, table(facts));
  }

  tick() {
    const member = this.#member();
    if (member) showBeat(this.beat, member, this.model);
  }

  close() {}
}
