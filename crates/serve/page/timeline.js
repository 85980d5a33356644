// The timeline: who led each lease when, where nobody did and why, and when duties moved.

import { bands, earliest } from "./bands.js";
import { h, list, name, setAttribute, setClass, setText } from "./dom.js";
import { count, date, route, shortTime, span, time, tint } from "./format.js";
import { standing } from "./health.js";
import { Virtual } from "./virtual.js";

const MINUTE = 60_000;
const RANGES = [["5 min", 5 * MINUTE], ["1 h", 60 * MINUTE], ["6 h", 360 * MINUTE], ["24 h", 1440 * MINUTE]];
const SHORTEST = 5000;
const LONGEST = 400 * 1440 * MINUTE;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000];
const BINS = 160;
// So many leases are shown where there are more and nobody asked for all.
const FEW = 12;

export class Timeline {
  // `only` is the lease that it is about; without one it is about all, and the moves of duties.
  constructor(model, only = null) {
    Object.assign(this, { model, only });
    this.length = null;
    // Where it ends; null follows the present.
    this.end = null;
    this.tip = h("div", { class: "tip", role: "tooltip", id: `tip-${only ? "one" : "all"}`, hidden: true });
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.rows = new Virtual({
      height: 34,
      label: "Who led each lease, in time",
      key: (lease) => lease,
      row: () => this.#row(),
      show: (row, lease) => this.#show(row, lease),
    });
    this.moved = h("div", { class: "track moves-track" });
    const turn = () => {
      this.whole = !this.whole;
      this.update();
    };
    this.more = h("button", { type: "button", class: "chip more", onclick: turn, hidden: true });
    this.movedNote = h("span", { class: "tl-name dim" });
    this.element = h(
      "section",
      { class: "timeline", "aria-label": "Timeline" },
      this.#tools(),
      h("div", { class: "tl-row tl-head" }, h("span", { class: "tl-name" }), this.axis),
      this.rows.element,
      this.more,
      !only && h("div", { class: "tl-row tl-moves" }, this.movedNote, this.moved),
      this.tip,
    );
    this.#listen();
  }

  close() {
    this.rows.close();
  }

  #tools() {
    const press = (act) => () => {
      act();
      this.update();
    };
    this.presets = RANGES.map(([text, length]) => h("button", { type: "button", class: "chip", onclick: press(() => this.#choose(length)), text }));
    this.all = h("button", { type: "button", class: "chip", text: "All", onclick: press(() => this.#choose(0)) });
    this.live = h("button", { type: "button", class: "chip", text: "Now", onclick: press(() => (this.end = null)) });
    this.shown = h("span", { class: "dim tl-shown" });
    return h(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "Time shown" },
      this.presets,
      this.all,
      h("button", { type: "button", class: "chip", text: "−", "aria-label": "Zoom out", onclick: press(() => this.zoom(2)) }),
      h("button", { type: "button", class: "chip", text: "+", "aria-label": "Zoom in", onclick: press(() => this.zoom(0.5)) }),
      this.live,
      this.shown,
    );
  }

  #listen() {
    this.element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.element.addEventListener("pointerdown", (event) => this.#grab(event));
    this.element.addEventListener("keydown", (event) => this.#press(event));
    const hide = () => (this.tip.hidden = true);
    this.element.addEventListener("pointerover", (event) => this.#point(event.target));
    this.element.addEventListener("focusin", (event) => this.#point(event.target));
    this.element.addEventListener("pointerleave", hide);
    this.element.addEventListener("focusout", hide);
  }

  // The whole of it, if that isn't much; otherwise what is recent.
  #fitOnce() {
    const whole = (this.model.now() - this.#earliest()) * 1.05;
    const length = Math.min(Math.max(whole, MINUTE), 6 * 60 * MINUTE);
    if (!this.length || length > this.length * 1.05) this.length = length;
  }

  #earliest() {
    if (!this.only) return earliest(this.model);
    return this.model.leases.get(this.only)?.changes[0]?.at_ms || this.model.now() - MINUTE;
  }

  #choose(length) {
    this.chosen = true;
    this.end = null;
    this.length = length || Math.max(MINUTE, (this.model.now() - this.#earliest()) * 1.03);
  }

  #window() {
    const to = this.end ?? this.model.now();
    return { from: to - this.length, to };
  }

  // Makes the time shown shorter or longer, around a place between 0 (left) and 1.
  zoom(by, around = this.end === null ? 1 : 0.5) {
    this.chosen = true;
    const { from, to } = this.#window();
    const middle = from + (to - from) * around;
    this.length = Math.min(LONGEST, Math.max(SHORTEST, (to - from) * by));
    if (around < 1) this.#moveTo(middle + this.length * (1 - around));
  }

  #moveTo(end) {
    this.chosen = true;
    this.end = end >= this.model.now() ? null : end;
  }

  #wheel(event) {
    const track = event.target.closest(".track, .axis");
    if (!track || !(event.ctrlKey || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) return;
    event.preventDefault();
    const bounds = track.getBoundingClientRect();
    if (event.ctrlKey) this.zoom(Math.exp(event.deltaY / 300), (event.clientX - bounds.left) / bounds.width);
    else this.#moveTo(this.#window().to + ((event.deltaX || event.deltaY) / bounds.width) * this.length);
    this.update();
  }

  #grab(event) {
    const track = event.target.closest(".track, .axis");
    if (!track || event.button !== 0 || event.pointerType === "touch") return;
    const start = { x: event.clientX, to: this.#window().to };
    const width = track.getBoundingClientRect().width;
    const move = (moved) => {
      this.#moveTo(start.to - ((moved.clientX - start.x) / width) * this.length);
      this.update();
    };
    const end = () => removeEventListener("pointermove", move);
    addEventListener("pointermove", move);
    addEventListener("pointerup", end, { once: true });
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const part = this.length / 4;
    const act = {
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.#choose(0),
      "[": () => this.#moveTo(this.#window().to - part),
      "]": () => this.#moveTo(this.#window().to + part),
      Escape: () => (this.tip.hidden = true),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    this.update();
  }

  #point(target) {
    const band = target.closest?.(".band, .moved");
    this.tip.hidden = !band;
    if (!band) return;
    setText(this.tip, band.getAttribute("aria-label"));
    const bounds = band.getBoundingClientRect();
    const around = this.element.getBoundingClientRect();
    const left = Math.max(bounds.left, around.left) - around.left;
    this.tip.style.left = `${Math.max(0, Math.min(left, around.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${bounds.bottom - around.top + 6}px`;
  }

  update() {
    // Until somebody chooses, it is as long as what is known.
    if (!this.chosen) this.#fitOnce();
    this.drawn = this.#window();
    this.#drawAxis();
    this.rows.setItems(this.#leases());
    if (!this.only) this.#drawMoves();
    const { from, to } = this.drawn;
    setText(this.shown, this.end === null ? `the last ${span(this.length)}` : `${date(from)} to ${date(to)}`);
    setClass(this.live, this.end === null ? "chip on" : "chip");
    this.live.setAttribute("aria-pressed", this.end === null);
    this.presets.forEach((button, at) => button.setAttribute("aria-pressed", this.length === RANGES[at][1]));
  }

  // All leases, or, where there are many and nobody asked for all, those that changed hands last and those that
  // nobody leads.
  #leases() {
    if (this.only) return [this.only];
    const { leases, leaseNames } = this.model;
    const many = leaseNames.length > FEW + 2;
    this.more.hidden = !many;
    setText(this.more, this.whole ? `Only the latest ${FEW}` : `All ${leaseNames.length.toLocaleString("en")} leases`);
    if (!many || this.whole) return leaseNames;
    const urgency = (name) => {
      const lease = leases.get(name);
      return (standing(lease, this.model) === "led" || (!lease.leader && lease.term === 0) ? 0 : 1e15) + (lease.changes.at(-1)?.at_ms ?? 0);
    };
    const first = leaseNames.map((name) => [urgency(name), name]).sort((a, b) => b[0] - a[0]).slice(0, FEW);
    const chosen = new Set(first.map(([, name]) => name));
    return leaseNames.filter((name) => chosen.has(name));
  }

  // The present goes on: draws anew if it is in sight and moved by about a pixel.
  tick() {
    if (this.end === null && (!this.drawn || this.model.now() - this.drawn.to > this.length / 900)) this.update();
  }

  #drawAxis() {
    const { from, to } = this.drawn;
    const wide = Math.max(200, this.axis.clientWidth);
    const step = 1000 * (STEPS.find((step) => ((to - from) / 1000 / step) * 76 < wide) ?? STEPS.at(-1));
    const offset = new Date(from).getTimezoneOffset() * MINUTE;
    const ticks = [];
    for (let at = Math.ceil((from - offset) / step) * step + offset; at < to; at += step) ticks.push(at);
    const shown = (at) => (step < MINUTE ? time(at) : step >= 1440 * MINUTE ? date(at, 0).slice(5, 10) : shortTime(at));
    list(this.axis, ticks, (at) => at, (at) => h("span", { class: "mark", text: shown(at) }), (mark, at) => {
      mark.style.left = `${((at - from) / (to - from)) * 100}%`;
    });
  }

  #row() {
    const link = h("a", { class: "name", "data-focus": "" });
    const label = h("span", { class: "tl-name", role: "rowheader" }, h("span", { class: "dot", "aria-hidden": "true" }), h("bdi", {}, link));
    return h("div", { class: "tl-row" }, label, h("div", { class: "track", role: "cell" }));
  }

  #show(row, leaseName) {
    const lease = this.model.leases.get(leaseName);
    if (!lease) return;
    const link = row.querySelector("a");
    setText(link, leaseName);
    setAttribute(link, "href", route("leases", leaseName));
    setAttribute(link, "title", leaseName);
    setClass(row.querySelector(".dot"), `dot ${standing(lease, this.model)}`);
    const { from, to } = this.drawn;
    const shown = bands(lease, this.model).filter((band) => band.to > from && band.from < to);
    list(row.lastElementChild, shown, (band) => `${leaseName} ${band.kind} ${band.from} ${band.term}`, band, (element, band) => {
      this.#place(element, band.from, band.to);
      setAttribute(element, "aria-label", band.text);
    });
  }

  #place(element, begin, end) {
    const { from, to } = this.drawn;
    const left = Math.max(0, (begin - from) / (to - from));
    const right = Math.min(1, (end - from) / (to - from));
    element.style.left = `${left * 100}%`;
    element.style.width = `${(right - left) * 100}%`;
  }

  // Moves near each other in one mark, as tall as they are many.
  #drawMoves() {
    const { from, to } = this.drawn;
    const bins = new Map();
    const width = (to - from) / BINS;
    for (const moved of this.model.moves) {
      if (moved.at_ms < from || moved.at_ms > to) continue;
      // Bins stand still in time, so that marks don't flicker while the present goes on.
      const bin = Math.floor(moved.at_ms / width);
      if (!bins.has(bin)) bins.set(bin, []);
      bins.get(bin).push(moved);
    }
    const most = Math.max(1, ...[...bins.values()].map((moves) => moves.length));
    setText(this.movedNote, this.model.moves.length ? "Duties moved" : "No duty moved");
    list(this.moved, bins, ([bin]) => bin, () => h("button", { type: "button", class: "moved", tabindex: "-1" }), (mark, [bin, moves]) => {
      mark.style.left = `${((bin * width - from) / (to - from)) * 100}%`;
      mark.style.height = `${30 + 70 * (moves.length / most)}%`;
      setClass(mark, moves.some((moved) => !moved.to) ? "moved bad" : "moved");
      setAttribute(mark, "aria-label", tell(moves));
    });
    this.moved.firstElementChild?.setAttribute("tabindex", "0");
    this.moved.onkeydown ??= (event) => along(event);
  }
}

function band({ kind, node, text }) {
  const led = kind === "led";
  const title = led ? name(node) : h("span", { text: { gap: "nobody", free: "free", doubt: "?" }[kind] });
  return h("button", { type: "button", class: `band ${kind}${led ? ` tint-${tint(node)}` : ""}`, tabindex: "-1", "data-stop": "", "aria-label": text }, title);
}

// Left and right among the marks of moves.
function along(event) {
  const next = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
  if (!next) return;
  event.preventDefault();
  event.target[next]?.focus();
}

function tell(moves) {
  const shown = moves.slice(0, 6).map((moved) => `${date(moved.at_ms)} ${moved.duty}: ${moved.from ?? "nowhere"} → ${moved.to ?? "nowhere"} (${moved.why})`);
  if (moves.length > shown.length) shown.push(`and ${moves.length - shown.length} more`);
  return `${count(moves.length, "move")}. ${shown.join("; ")}`;
}
