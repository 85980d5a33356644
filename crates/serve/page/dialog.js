// Asking before anything is done: what it means, what the leader would move, and only then the button.

import { get, send } from "./api.js";
import { fill, h, name } from "./dom.js";
import { count } from "./format.js";

// How many moves a diff lists one by one.
const LISTED = 200;

let next = 0;

// Opens a dialog for an action, and does it if it is confirmed.
export function confirm(model, action) {
  new Confirmation(model, action).open();
}

class Confirmation {
  constructor(model, action) {
    Object.assign(this, { model, action });
    const id = `dialog-${(next += 1)}`;
    this.said = h("div", { class: "said", "aria-live": "polite" });
    this.diff = h("div", { class: "diff", "aria-live": "polite" });
    this.yes = h("button", { type: "submit", class: action.danger ? "button danger strong" : "button strong", value: "yes", "data-confirm": "", text: action.label });
    this.no = h("button", { type: "button", class: "button", "data-cancel": "", text: "Cancel", onclick: () => this.dialog.close() });
    this.form = h(
      "form",
      { method: "dialog", onsubmit: (event) => this.#submit(event) },
      h("h2", { id }, h("bdi", { text: action.title })),
      h("p", { text: action.text }),
      model.cluster?.clusters?.length > 1 && h("p", { class: "dim" }, "In the cluster ", name(model.cluster.cluster), "."),
      action.choose && this.#choice(id),
      this.diff,
      this.said,
      h("div", { class: "dialog-buttons" }, this.no, this.yes),
    );
    this.dialog = h("dialog", { class: "dialog confirmation", "aria-labelledby": id }, this.form);
    this.dialog.addEventListener("close", () => this.#close());
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
  }

  open() {
    this.before = document.activeElement;
    document.body.append(this.dialog);
    this.dialog.showModal();
    (this.input ?? this.no).focus();
    this.#look();
  }

  #close() {
    this.asking?.abort();
    this.dialog.remove();
    // The button may be another one by now: what was pressed may have changed it.
    if (this.before?.isConnected) this.before.focus();
    else {
      const near = document.querySelector("#detail:not([hidden])") ?? document.querySelector("main");
      const same = near.querySelector(`.acts [data-act$="${this.action.act}"]`);
      (same ?? near.querySelector(".acts button") ?? near).focus();
    }
  }

  #choice(id) {
    const { label, options, check } = this.action.choose;
    const names = options();
    this.input = h("input", { id: `${id}-to`, list: `${id}-nodes`, autocomplete: "off", required: true, spellcheck: "false", oninput: () => this.#typed() });
    this.check = check && h("input", { type: "checkbox" });
    const known = h("datalist", { id: `${id}-nodes` }, names.slice(0, 1000).map((node) => h("option", { value: node })));
    const chips = names.length <= 8 && h("div", { class: "chips" }, names.map((node) => h("button", { type: "button", class: "chip", onclick: () => this.#pick(node) }, name(node))));
    return h("div", { class: "field" }, h("label", { for: `${id}-to`, text: label }), this.input, known, chips, check && h("label", { class: "check" }, this.check, check));
  }

  #pick(node) {
    this.input.value = node;
    this.#look();
  }

  #typed() {
    clearTimeout(this.typing);
    this.yes.disabled = Boolean(this.action.plan);
    this.typing = setTimeout(() => this.#look(), 250);
  }

  // Asks what the leader would do. It can be confirmed only once that is shown, or is known not to be known.
  async #look() {
    const { action } = this;
    const to = this.input?.value.trim();
    if (!action.plan) return;
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.yes.disabled = true;
    if (action.choose && !to) {
      fill(this.diff, h("p", { class: "dim", text: "Name a node to see what would move." }));
      return;
    }
    fill(this.diff, h("p", { class: "dim", text: "Asking what would move…" }));
    try {
      const plan = await get("v1/plan", action.plan(to), asking.signal);
      fill(this.diff, diff(plan));
    } catch (error) {
      if (asking.signal.aborted) return;
      fill(this.diff, h("p", { class: "error" }, `What would move isn't known: ${error.message}`));
    }
    this.yes.disabled = false;
  }

  async #submit(event) {
    event.preventDefault();
    const { action } = this;
    if (this.yes.disabled) return;
    this.yes.disabled = true;
    fill(this.said, h("p", { class: "dim", text: "Asking…" }));
    try {
      const body = action.body?.(this.input?.value.trim(), this.check?.checked ?? false);
      const answer = await (await send(action.method, action.path, { body, headers: action.headers })).json().catch(() => ({}));
      this.dialog.close();
      const unknown = answer.unknown?.length ? ` Nobody knows ${answer.unknown.join(", ")} at the moment; it holds when they appear.` : "";
      announce(`${action.label}: asked for, and written down.${unknown}`);
    } catch (error) {
      fill(this.said, h("p", { class: "error", role: "alert", text: error.message }));
      this.yes.disabled = false;
    }
  }
}

// A plan as what changes: from where to where, and what would run nowhere.
export function diff(plan) {
  const parts = [];
  if (plan.unknown) parts.push(h("p", { class: "advice", text: `The leader may do otherwise: ${plan.unknown}` }));
  const stay = plan.moves.length === 0 && plan.unplaced.length === 0;
  if (stay) parts.push(h("p", { class: "calm", text: "No duty would move." }));
  if (plan.moves.length > 0) {
    parts.push(h("h3", { text: `${count(plan.moves.length, "duty", "duties")} would move` }), summary(plan.moves));
    const rows = plan.moves.slice(0, LISTED).map((moved) =>
      h("li", {}, name(moved.duty), h("span", { class: "diff-from" }, name(moved.from ?? "nowhere")), h("span", { class: "arrow", text: "→" }), h("span", { class: moved.to ? "diff-to" : "diff-nowhere" }, name(moved.to ?? "nowhere")), h("span", { class: "dim why-cell", text: moved.why })),
    );
    const more = plan.moves.length > LISTED && h("li", { class: "dim", text: `and ${plan.moves.length - LISTED} more` });
    parts.push(h("ul", { class: "diff-rows", tabindex: "0", "aria-label": "Moves" }, rows, more));
  }
  if (plan.unplaced.length > 0) {
    parts.push(h("h3", { class: "bad", text: `${count(plan.unplaced.length, "duty", "duties")} would run nowhere` }));
    parts.push(h("ul", { class: "diff-rows bad" }, plan.unplaced.slice(0, LISTED).map(({ duty, reason }) => h("li", {}, name(duty), h("span", { class: "dim why-cell", text: reason })))));
  }
  return parts;
}

// So many to each node, where there are many.
function summary(moves) {
  if (moves.length < 12) return null;
  const counts = new Map();
  for (const { to } of moves) counts.set(to, (counts.get(to) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12);
  return h("p", { class: "pills" }, most.map(([to, number]) => h("span", { class: to ? "pill" : "pill unassigned" }, name(to ?? "nowhere"), ` +${number}`)));
}

// Says something for a few seconds, aloud too.
export function announce(text) {
  const place = document.getElementById("toasts");
  const toast = h("p", { class: "toast", text });
  place.append(toast);
  setTimeout(() => toast.remove(), 6000);
}

// Asks for a token, and resolves with it. There is only ever one such dialog.
let pending = null;

export function askForToken(why) {
  pending ??= new Promise((resolve) => {
    const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
    const submit = (event) => {
      event.preventDefault();
      dialog.remove();
      pending = null;
      resolve(input.value.trim());
    };
    const form = h(
      "form",
      { method: "dialog", onsubmit: submit },
      h("h2", { id: "token-title", text: "A token is needed" }),
      h("p", { text: why }),
      h("div", { class: "field" }, h("label", { for: "token", text: "Token" }), input),
      h("p", { class: "dim", text: "It is kept until this tab is closed, and sent only to this server." }),
      h("div", { class: "dialog-buttons" }, h("button", { type: "submit", class: "button strong", text: "Go on" })),
    );
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": "token-title" }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
  return pending;
}
