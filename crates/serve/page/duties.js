// Duties: a grid by node, a list, what runs nowhere and why, and one in detail.

import { showActions, steerDuty } from "./actions.js";
import { get, path } from "./api.js";
import { empty, fill, h, list, name, setAttribute, setClass, setText } from "./dom.js";
import { amount, compare, count, date, route, short } from "./format.js";
import { table } from "./leases.js";
import { STATES } from "./model.js";
import { Virtual } from "./virtual.js";

const SQUARE = 19;

// A square for each duty: its colour is its state. With names, they are pills.
export function dutySquares(element, duties, model, { names = false, lit = null } = {}) {
  list(
    element,
    duties,
    (duty) => duty,
    (duty) => h("a", { href: route("duties", duty), "data-stop": "" }, names && name(duty)),
    (square, duty) => {
      const state = model.duties.get(duty)?.state ?? "gone";
      setClass(square, `${names ? "pill" : "square"} ${state}${lit && !lit.has(duty) ? " faded" : ""}`);
      setAttribute(square, "title", `${duty}: ${state}`);
      setAttribute(square, "aria-label", `${duty}: ${state}`);
      if (!names) setAttribute(square, "tabindex", "-1");
    },
  );
}

// Whether the names of these duties fit into so many pixels, roughly.
function fitNames(duties, width) {
  let needed = 0;
  for (const duty of duties) needed += 24 + 8 * Math.min(duty.length, 24);
  return needed < width;
}

// So many of each state, as parts of one bar.
function shares(element, duties, model) {
  const counts = new Map();
  for (const duty of duties) {
    const state = model.duties.get(duty)?.state;
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  const shown = STATES.filter((state) => counts.has(state)).reverse();
  list(element, shown, (state) => `share ${state}`, (state) => h("span", { class: `share ${state}` }), (part, state) => {
    part.style.flexGrow = counts.get(state);
    setText(part, counts.get(state));
    setAttribute(part, "title", `${counts.get(state)} ${state}`);
  });
}

export class Duties {
  constructor({ model, query, search, setQuery }) {
    Object.assign(this, { model, setQuery });
    this.filter = query.q ?? "";
    this.state = STATES.includes(query.state) ? query.state : "";
    this.flat = query.view === "list";
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Only those in this state" });
    this.search = search("Find a duty, a family or a node", this.filter, (text) => this.#want({ filter: text }));
    this.views = ["By node", "List"].map((text, at) =>
      h("button", { type: "button", class: "chip", text, onclick: () => this.#want({ flat: at === 1 }) }),
    );
    this.unplaced = h("div", { class: "unplaced" });
    this.none = h("div");
    this.grid = new Virtual({ height: 44, label: "Duties by node", key: (id) => id, row: gridRow, show: (row, id) => this.#showNode(row, id) });
    this.grid.element.classList.add("grid-table");
    this.list = new Virtual({
      height: 40,
      label: "Duties",
      columns: [["Duty"], ["State"], ["Node"], ["Version"], ["Term", "num"], ["Note"]],
      key: (duty) => duty,
      row: listRow,
      show: (row, duty) => this.#showDuty(row, duty),
    });
    this.list.element.classList.add("duties-table");
    this.element = h(
      "div",
      { class: "panel" },
      h("div", { class: "tools" }, h("h1", { text: "Duties" }), this.search, h("div", { class: "chips", role: "group", "aria-label": "Shown" }, this.views)),
      this.chips,
      this.unplaced,
      this.none,
      this.grid.element,
      this.list.element,
    );
  }

  #want(wish) {
    Object.assign(this, wish);
    this.setQuery({ q: this.filter, state: this.state, view: this.flat ? "list" : "" });
    this.update();
  }

  close() {
    this.grid.close();
    this.list.close();
  }

  tick() {}

  update() {
    this.#drawChips();
    const { model } = this;
    const filtered = this.filter || this.state;
    this.matching = filtered ? model.dutyNames.filter((duty) => this.#matches(model.duties.get(duty))) : model.dutyNames;
    const nothing = this.matching.length === 0;
    const flat = this.flat && !nothing;
    this.list.element.hidden = !flat;
    this.grid.element.hidden = this.flat || nothing;
    this.views.forEach((button, at) => {
      button.setAttribute("aria-pressed", (at === 1) === this.flat);
    });
    fill(this.none, nothing && (filtered ? empty("No duty matches.") : empty("There are no duties.", "No live node serves a family. Leases work without one.")));
    this.#drawUnplaced();
    if (flat) this.list.setItems(this.matching);
    else if (!nothing) this.#drawGrid(filtered);
  }

  #matches(duty) {
    if (this.state && duty.state !== this.state) return false;
    const wanted = this.filter.toLowerCase();
    return !wanted || duty.duty.toLowerCase().includes(wanted) || (duty.node ?? "").toLowerCase().includes(wanted);
  }

  #drawChips() {
    const { counts, duties } = this.model;
    const shown = ["", ...STATES].filter((state) => state === "" || counts[state] > 0 || state === this.state);
    list(
      this.chips,
      shown,
      (state) => `state ${state}`,
      (state) => h("button", { type: "button", class: "chip", onclick: () => this.#want({ state }) }, state && h("span", { class: `square ${state}` }), h("span")),
      (chip, state) => {
        setText(chip.lastElementChild, state ? `${state} ${counts[state].toLocaleString("en")}` : `all ${duties.size.toLocaleString("en")}`);
        setAttribute(chip, "aria-pressed", this.state === state);
      },
    );
  }

  // Those that run nowhere, put together by the reason.
  #drawUnplaced() {
    const reasons = new Map();
    for (const duty of this.model.homeless) {
      const standing = this.model.duties.get(duty);
      if (!this.#matches(standing)) continue;
      const why = standing.error ?? standing.reason ?? (standing.state === "done" ? "it is done" : "no reason is known yet");
      if (!reasons.has(why)) reasons.set(why, []);
      reasons.get(why).push(duty);
    }
    const groups = [...reasons].map(([why, duties]) => ({ why, duties, key: `${why}\n${duties.slice(0, 8).join("\n")}\n${duties.length}` }));
    this.unplaced.hidden = groups.length === 0 || this.flat;
    list(this.unplaced, groups, (group) => group.key, (group) => {
      const shown = group.duties.slice(0, 8).map((duty) => h("a", { class: `pill ${this.model.duties.get(duty).state}`, href: route("duties", duty) }, name(duty)));
      const more = group.duties.length > 8 && h("span", { class: "dim", text: `and ${group.duties.length - 8} more` });
      return h("div", { class: `reason ${this.model.duties.get(group.duties[0]).state}` }, h("p", {}, h("strong", { text: count(group.duties.length, "duty", "duties") }), " on no node: ", h("bdi", { text: group.why })), h("p", { class: "pills" }, shown, more));
    });
  }

  #drawGrid(filtered) {
    const { model } = this;
    this.lit = filtered ? new Set(this.matching) : null;
    this.room = Math.max(8, Math.floor((this.grid.element.clientWidth - (innerWidth < 700 ? 150 : 250)) / SQUARE));
    const carrying = (id) => model.carried.get(id)?.size > 0;
    const alive = model.memberIds.filter((id) => model.members.get(id).state === "alive" || carrying(id));
    // Duties may stand on members that nobody lists any more.
    const lost = [...model.carried.keys()].filter((id) => !model.members.has(id) && carrying(id));
    let ids = [...alive, ...lost];
    if (this.lit) {
      const on = new Set(this.matching.map((duty) => model.duties.get(duty).member));
      ids = ids.filter((id) => on.has(id));
    }
    // Names where there is room for all of them, else squares; a node that has too many for those gets numbers.
    this.named = ids.length <= 100 && ids.every((id) => fitNames(model.carried.get(id) ?? [], this.room * SQUARE));
    this.grid.element.hidden = ids.length === 0;
    this.grid.setItems(ids);
  }

  #showNode(row, id) {
    const { parts } = row;
    const member = this.model.members.get(id);
    const carried = this.model.carried.get(id) ?? new Set();
    setText(parts.link, member?.node ?? short(id));
    setAttribute(parts.link, "href", route("nodes", id));
    setText(parts.count, carried.size);
    const state = !member ? "gone" : member.drained ? "drained" : member.cordoned ? "cordoned" : member.state;
    setClass(parts.dot, `dot ${state}`);
    const sorted = this.#sorted(carried, id);
    const shape = this.named ? "squares named" : carried.size > this.room ? "shares" : "squares";
    setClass(parts.duties, shape);
    if (row.shape !== shape) fill(parts.duties);
    row.shape = shape;
    if (shape === "shares") shares(parts.duties, carried, this.model);
    else dutySquares(parts.duties, sorted, this.model, { lit: this.lit, names: shape !== "squares" });
  }

  #sorted(carried, id) {
    // Kept until the member carries others, because sorting is what takes time.
    const cached = (this.sorted ??= new Map()).get(id);
    if (cached && cached.length === carried.size && cached.every((duty) => carried.has(duty))) return cached;
    const sorted = [...carried].sort(compare);
    this.sorted.set(id, sorted);
    return sorted;
  }

  #showDuty(row, dutyName) {
    const duty = this.model.duties.get(dutyName);
    if (!duty) return;
    const { parts } = row;
    setText(parts.link, dutyName);
    setAttribute(parts.link, "href", route("duties", dutyName));
    setClass(parts.square, `square ${duty.state}`);
    setText(parts.state, duty.state);
    setText(parts.node, duty.node ?? "–");
    setText(parts.version, duty.version ?? "–");
    setText(parts.term, duty.term);
    setText(parts.note, note(duty));
  }
}

function note(duty) {
  const pinned = duty.pinned ? `pinned to ${duty.pinned.node}${duty.pinned.required ? " or nowhere" : ""}` : null;
  return [duty.error, duty.reason, pinned, duty.progress].filter(Boolean).join("; ");
}

function gridRow() {
  const parts = {
    dot: h("span", { class: "dot", "aria-hidden": "true" }),
    link: h("a", { class: "name", "data-focus": "" }),
    count: h("span", { class: "num dim" }),
    duties: h("div", { class: "squares" }),
  };
  const head = h("span", { role: "rowheader", class: "with-dot grid-head" }, parts.dot, h("bdi", {}, parts.link), parts.count);
  const made = h("div", { class: "grid-row" }, head, h("div", { role: "cell", class: "grid-cell" }, parts.duties));
  made.parts = parts;
  return made;
}

function listRow() {
  const cell = (className) => h("span", { role: "cell", class: className });
  const parts = {
    link: h("a", { class: "name", "data-focus": "" }),
    square: h("span", { class: "square", "aria-hidden": "true" }),
    state: h("span"),
    node: cell("cut"),
    version: cell("cut"),
    term: cell("num"),
    note: cell("cut dim"),
  };
  const { link, square, state, ...cells } = parts;
  const made = h(
    "div",
    { class: "v-grid" },
    h("span", { role: "rowheader", class: "cut" }, h("bdi", {}, link)),
    h("span", { role: "cell", class: "with-dot" }, square, state),
    Object.values(cells),
  );
  made.parts = parts;
  return made;
}

// One duty: how it stands, why, where it was, and what can be asked for it.
export class DutyDetail {
  constructor({ model, id, heading }) {
    Object.assign(this, { model, duty: id });
    this.body = h("div");
    this.acts = h("div");
    this.why = h("div", { "aria-live": "polite" }, h("p", { class: "dim", text: "Asking…" }));
    this.moved = h("div");
    this.element = h("div", {}, heading("Duty", id), this.body, this.acts, h("h3", { text: "Why it is so" }), this.why, h("h3", { text: "Moves" }), this.moved);
  }

  update() {
    const duty = this.model.duties.get(this.duty);
    if (!duty) {
      fill(this.body, empty("Nobody knows a duty of that name.", "Live nodes say which duties there are."));
      fill(this.why);
      return;
    }
    const seen = JSON.stringify([this.model.cluster?.read_only, duty]);
    if (seen !== this.seen) {
      this.seen = seen;
      this.#facts(duty);
      showActions(this.acts, this.model, steerDuty(duty, this.model));
      this.#explain();
    }
    const moves = this.model.moves.filter((moved) => moved.duty === this.duty).reverse();
    if (moves.length !== this.known) {
      this.known = moves.length;
      fill(this.moved, moves.length ? h("ol", { class: "log" }, moves.map(move)) : h("p", { class: "dim", text: "None is remembered." }));
    }
  }

  #facts(duty) {
    const facts = [["State", h("span", { class: "with-dot" }, h("span", { class: `square ${duty.state}` }), duty.state)]];
    if (duty.node) facts.push(["Node", h("a", { href: route("nodes", duty.member ?? duty.node) }, name(duty.node))]);
    if (duty.reason) facts.push(["Reason", name(duty.reason)]);
    if (duty.error) facts.push(["Error", name(duty.error, { class: "name error" })]);
    if (duty.failures) facts.push(["Failures", h("span", { class: "num", text: duty.failures })]);
    if (duty.progress) facts.push(["Progress", name(duty.progress)]);
    if (duty.pinned) facts.push(["Pinned to", [name(duty.pinned.node), duty.pinned.required ? " or nowhere" : ""]]);
    if (duty.version) facts.push(["Version", name(duty.version)]);
    facts.push(["Term", h("span", { class: "num", text: duty.term })], ["Weight", amount(duty.weight)]);
    if (duty.address) facts.push(["Address", name(duty.address)]);
    fill(this.body, table(facts));
  }

  async #explain() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    try {
      const { explanation } = await get(path("duties", this.duty, "explain"), {}, asking.signal);
      fill(this.why, h("ul", { class: "why" }, explanation.map((line) => h("li", { text: line }))));
    } catch (error) {
      if (!asking.signal.aborted) fill(this.why, h("p", { class: "error", text: error.message }));
    }
  }

  tick() {}

  close() {
    this.asking?.abort();
  }
}

export function move(moved) {
  const where = (node) => (node ? name(node) : h("em", { text: "nowhere" }));
  return h(
    "li",
    {},
    h("span", { class: "num dim", text: date(moved.at_ms) }),
    h("span", {}, h("a", { href: route("duties", moved.duty) }, name(moved.duty)), " ", where(moved.from), " → ", where(moved.to), " ", h("span", { class: "dim", text: moved.why })),
  );
}
