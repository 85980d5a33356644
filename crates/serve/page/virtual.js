// Long lists of which only what is in sight is in the document. The page itself scrolls, so that phones and
// keyboards behave as everywhere.

import { h } from "./dom.js";

const SPARE = 8;

export class Virtual {
  #items = [];
  #rows = new Map();
  #free = [];

  // `row()` makes an empty row, `show(row, item)` puts an item into it: rows are used again for other items.
  constructor({ height, label, columns, row, show, key }) {
    Object.assign(this, { height, makeRow: row, show, key });
    this.body = h("div", { class: "v-body", role: "rowgroup" });
    const heads = columns?.map(([text, className]) => h("span", { class: className, role: "columnheader", text }));
    this.element = h(
      "div",
      { class: "v-table", role: "table", "aria-label": label },
      heads && h("div", { role: "rowgroup" }, h("div", { class: "v-head v-grid", role: "row" }, heads)),
      this.body,
    );
    this.element.addEventListener("keydown", (event) => this.#press(event));
    this.onScroll = () => this.refresh();
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll, { passive: true });
  }

  close() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
  }

  setItems(items) {
    this.#items = items;
    this.body.style.height = `${items.length * this.height}px`;
    this.element.setAttribute("aria-rowcount", items.length);
    this.refresh();
  }

  // Draws what is in sight anew.
  refresh() {
    const top = this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / this.height) - SPARE);
    const last = Math.min(this.#items.length, Math.ceil((innerHeight - top) / this.height) + SPARE);
    const wanted = new Map();
    for (let at = first; at < last; at += 1) wanted.set(this.key(this.#items[at]), at);
    this.#keepFocus(wanted);
    for (const [key, row] of this.#rows) {
      if (!wanted.has(key)) {
        this.#rows.delete(key);
        this.#free.push(row);
      }
    }
    for (const [key, at] of wanted) this.#place(key, at);
    for (const row of this.#free) row.remove();
    this.#order(wanted.keys());
    this.#free.length = Math.min(this.#free.length, 2 * SPARE);
  }

  // The row that has the focus stays, wherever it is scrolled to.
  #keepFocus(wanted) {
    const focused = document.activeElement?.closest(".v-row");
    if (!focused || focused.parentElement !== this.body || wanted.has(focused.itemKey)) return;
    const at = this.#items.findIndex((item) => this.key(item) === focused.itemKey);
    if (at >= 0) wanted.set(focused.itemKey, at);
  }

  #place(key, at) {
    let row = this.#rows.get(key);
    if (!row) {
      row = this.#free.pop() ?? this.#make();
      row.itemKey = key;
      this.#rows.set(key, row);
    }
    if (row.at !== at) {
      row.at = at;
      row.style.top = `${at * this.height}px`;
      row.setAttribute("aria-rowindex", at + 1);
    }
    this.show(row, this.#items[at]);
  }

  // The order in the document is that on the screen, for keyboards and screen readers. A row that has the focus
  // isn't moved, because it would lose it.
  #order(keys) {
    let next = this.body.firstElementChild;
    for (const key of keys) {
      const row = this.#rows.get(key);
      const stays = row.parentElement === this.body && row.contains(document.activeElement);
      if (row === next || stays) next = row.nextElementSibling;
      else this.body.insertBefore(row, next);
    }
  }

  #make() {
    const row = this.makeRow();
    row.classList.add("v-row");
    row.setAttribute("role", "row");
    row.style.height = `${this.height}px`;
    return row;
  }

  // Up and down go from row to row, left and right within one.
  #press(event) {
    const row = event.target.closest(".v-row");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(innerHeight / this.height) - 4);
    const last = this.#items.length - 1;
    const to = { ArrowUp: row.at - 1, ArrowDown: row.at + 1, PageUp: row.at - page, PageDown: row.at + page, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.focus(Math.min(last, Math.max(0, to)));
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const stops = [...row.querySelectorAll("[data-focus], [data-stop]")].filter((stop) => stop.offsetParent);
      const next = stops[stops.indexOf(event.target) + (event.key === "ArrowRight" ? 1 : -1)];
      if (next) {
        event.preventDefault();
        next.focus();
      }
    }
  }

  focus(at) {
    const item = this.#items[at];
    if (!item) return;
    const bounds = this.body.getBoundingClientRect();
    const top = bounds.top + at * this.height;
    const covered = document.querySelector(".bar")?.getBoundingClientRect().bottom ?? 0;
    if (top < covered + this.height) scrollBy(0, top - covered - this.height);
    else if (top + 2 * this.height > innerHeight) scrollBy(0, top + 2 * this.height - innerHeight);
    this.refresh();
    this.#rows.get(this.key(item))?.querySelector("[data-focus]")?.focus({ preventScroll: true });
  }
}
