// The first view: what needs attention, the timeline, and the nodes at a glance.

import { empty, fill, h } from "./dom.js";
import { count } from "./format.js";
import { NodeMap } from "./nodes.js";
import { attention } from "./status.js";
import { Timeline } from "./timeline.js";

export class Overview {
  constructor({ model, status }) {
    Object.assign(this, { model, status });
    this.attention = h("ul", { class: "attention", "aria-label": "Needs attention", hidden: true });
    this.timeline = new Timeline(model);
    this.map = new NodeMap(model);
    this.nodes = h("h2");
    this.none = h("div");
    this.element = h(
      "div",
      { class: "overview" },
      h("h1", { class: "unseen", text: "Overview" }),
      this.attention,
      h("div", { class: "panel" }, h("h2", { text: "Who led when" }), this.none, this.timeline.element),
      h("div", { class: "panel" }, this.nodes, this.map.element),
    );
  }

  update(changed) {
    if (changed.has("leases") || changed.has("moves")) this.timeline.update();
    const none = this.model.leaseNames.length === 0;
    if (none !== this.hadNone) {
      this.hadNone = none;
      fill(this.none, none && empty("Nobody has led anything yet.", "A lease appears here when a node first takes it."));
    }
    if (changed.has("members") || changed.has("duties")) {
      this.map.update();
      const live = this.model.live().length;
      this.nodes.textContent = `${count(live, "node")}, ${count(this.model.duties.size, "duty", "duties")}`;
    }
    this.tick();
  }

  tick() {
    attention(this.attention, this.status.health);
    this.timeline.tick();
  }

  close() {
    this.timeline.close();
  }
}
