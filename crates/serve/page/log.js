// What operators asked for, who did what, and what moved.

import { actions, showActions, steerCluster, withdraw } from "./actions.js";
import { get } from "./api.js";
import { move } from "./duties.js";
import { empty, fill, h, list, name } from "./dom.js";
import { date, span } from "./format.js";
import { identity } from "./model.js";

const SHOWN = 200;

export class Log {
  constructor({ model }) {
    this.model = model;
    this.acts = h("div");
    this.intents = h("div");
    this.audit = h("div", {}, h("p", { class: "dim", text: "Asking…" }));
    this.moved = h("ol", { class: "log" });
    this.none = empty("No duty has moved lately.");
    this.element = h(
      "div",
      { class: "log-view" },
      h("div", { class: "panel" }, h("div", { class: "tools" }, h("h1", { text: "What operators asked for" }), this.acts), this.intents),
      h("div", { class: "panel" }, h("h2", { text: "Who did what" }), this.audit),
      h("div", { class: "panel" }, h("h2", { text: "Moves of duties" }), this.none, this.moved),
    );
  }

  update(changed) {
    if (changed.has("intents")) {
      showActions(this.acts, this.model, steerCluster(this.model));
      this.#drawIntents();
      this.#readAudit();
    }
    if (changed.has("moves") || changed.has("duties")) {
      const moves = this.model.moves.slice(-SHOWN).reverse();
      this.none.hidden = moves.length > 0;
      list(this.moved, moves, identity, move);
    }
  }

  #drawIntents() {
    const { intents } = this.model;
    const rows = intents.map((intent) => {
      const open = intent.state !== "done" && intent.state !== "obsolete";
      const what = sentence(intent);
      return h(
        "li",
        {},
        h("span", { class: `tag ${open ? "open" : ""}`, text: intent.state }),
        h("span", { class: "grow" }, h("bdi", { text: what }), " ", h("span", { class: "dim", text: `${intent.by ? `by ${intent.by}, ` : ""}${span(this.model.now() - intent.at_ms)} ago` })),
        open && actions(this.model, [withdraw(intent, what)]),
      );
    });
    fill(this.intents, rows.length ? h("ul", { class: "rows" }, rows) : empty("Nobody has asked for anything.", "Pins, pauses, cordons and drains are listed here while they are in force."));
  }

  async #readAudit() {
    try {
      const { acts, bound } = await get("v1/audit");
      const rows = acts.map((act) =>
        h(
          "li",
          {},
          h("span", { class: "num dim", text: date(act.at_ms, this.model.now()) }),
          h("span", {}, h("strong", {}, name(act.who)), " ", h("span", { text: act.act }), " ", act.target && name(act.target), " ", h("span", { class: "dim", text: [act.detail, act.from && act.from !== act.who && `from ${act.from}`, act.outcome].filter(Boolean).join(" · ") })),
        ),
      );
      fill(this.audit, rows.length ? [h("ol", { class: "log" }, rows), h("p", { class: "dim", text: `The last ${bound} are kept.` })] : empty("Nobody has steered anything yet.", "This lists every act through this server: who, what, when and from where."));
    } catch (error) {
      fill(this.audit, h("p", { class: "error", text: error.message }));
    }
  }

  tick() {}

  close() {}
}

// What is asked, in words.
export function sentence(intent) {
  const { kind, duty, node, lease, family, version, term } = intent;
  const what = duty ?? lease ?? (kind === "pin" || kind === "move" ? "" : node) ?? family ?? "";
  const to = (kind === "pin" || kind === "move") && node ? ` to ${node}` : "";
  const in_term = term ? ` (term ${term})` : "";
  if (kind === "freeze") return "freeze: nothing moves just to balance the load";
  return `${kind} ${what}${to}${version ? ` to ${version}` : ""}${in_term}`;
}
