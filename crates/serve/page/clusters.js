// Which cluster is looked at, and how the others stand: one in trouble is seen from wherever one looks.

import { get } from "./api.js";
import { fill, h, list, name, setAttribute, setClass, setText } from "./dom.js";
import { count, plain } from "./format.js";

// Between two questions how all of them stand, which are asked only where there are several.
const PAUSE = 3000;

// What is said of others beside the name of the one that is looked at, the worst first.
const TROUBLE = ["bad", "unknown", "warn"];

export function address(cluster, section = "") {
  return `?cluster=${encodeURIComponent(cluster)}#/${section}`;
}

export class Clusters {
  // `choose(cluster)` is called with the one that somebody wants to look at.
  constructor(element, choose) {
    Object.assign(this, { element, choose, known: [], current: null });
    this.shown = name("");
    this.trouble = h("span", { class: "trouble", hidden: true });
    this.button = h("button", { type: "button", class: "chip", popovertarget: "clusters", title: "Clusters (c)" }, this.shown, h("span", { class: "arrow", "aria-hidden": "true", text: "▾" }), this.trouble);
    this.rows = h("ul");
    this.menu = h("nav", { id: "clusters", popover: "", "aria-label": "Clusters" }, this.rows);
    this.aloud = h("span", { class: "unseen", role: "status" });
    this.menu.addEventListener("toggle", (event) => this.#toggled(event.newState === "open"));
    this.menu.addEventListener("keydown", (event) => this.#press(event));
    this.#ask();
  }

  // Shows which one is looked at, of all that there are.
  show(current, names, readOnly) {
    const seen = JSON.stringify([current, names, readOnly]);
    if (seen === this.seen) return;
    this.seen = seen;
    this.current = current;
    const states = new Map(this.known.map((one) => [one.cluster, one]));
    this.known = names.map((cluster) => states.get(cluster) ?? { cluster, state: "wait", says: "" });
    setText(this.shown, current ?? "Choose a cluster");
    const several = names.length > 1 || current === null;
    if (this.button.isConnected !== several || !several) {
      fill(this.element, several ? [this.button, this.menu, this.aloud] : name(current), readOnly && h("span", { class: "tag", text: "read-only" }));
    }
    this.#draw();
    if (several) this.#read();
  }

  open() {
    if (this.button.isConnected) this.menu.togglePopover();
  }

  async #ask() {
    if (this.known.length > 1 && !document.hidden) await this.#read();
    setTimeout(() => this.#ask(), PAUSE);
  }

  async #read() {
    try {
      this.known = (await get("v1/clusters")).clusters;
    } catch {
      // The first line says what is the matter.
      return;
    }
    this.#draw();
  }

  #draw() {
    list(
      this.rows,
      this.known,
      (one) => one.cluster,
      ({ cluster }) => h("li", {}, h("a", { href: address(cluster), onclick: (event) => this.#click(event, cluster) }, h("span", { class: "dot", "aria-hidden": "true" }), name(cluster), h("span", { class: "dim" }))),
      (row, { cluster, state, says }) => {
        const [dot, , said] = row.firstElementChild.children;
        setClass(dot, `dot ${state === "empty" ? "" : state}`);
        setText(said, says);
        setAttribute(row.firstElementChild, "aria-current", cluster === this.current ? "true" : null);
      },
    );
    this.#warn();
  }

  // How the others stand, if one of them isn't well.
  #warn() {
    const others = this.known.filter(({ cluster }) => cluster !== this.current);
    const state = TROUBLE.find((level) => others.some((one) => one.state === level));
    const worst = others.filter((one) => one.state === state);
    this.trouble.hidden = !state;
    const said = worst.map(({ cluster, says }) => `${cluster}: ${says}`).join("; ");
    if (state) {
      setClass(this.trouble, `trouble ${state}`);
      setText(this.trouble, `▲ ${worst.length === 1 ? worst[0].cluster : count(worst.length, "other")}`);
      setAttribute(this.trouble, "title", plain(said));
    }
    setText(this.aloud, said);
  }

  #toggled(open) {
    if (!open) return;
    const { left, bottom } = this.button.getBoundingClientRect();
    const room = document.documentElement.clientWidth - this.menu.offsetWidth - 8;
    this.menu.style.left = `${Math.max(8, Math.min(left, room))}px`;
    this.menu.style.top = `${bottom + 4}px`;
    (this.rows.querySelector("[aria-current]") ?? this.rows.querySelector("a"))?.focus();
  }

  #press(event) {
    const links = [...this.rows.querySelectorAll("a")];
    const at = links.indexOf(event.target);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    links[to]?.focus();
  }

  // A link like any other: with a key held down it opens beside this page.
  #click(event, cluster) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.menu.hidePopover();
    if (cluster !== this.current) this.choose(cluster);
  }
}
