// The first line: is everything led and running, since when, how much margin is left, how old that is.

import { fill, h, list, setAttribute, setClass, setText } from "./dom.js";
import { count, date, plain, seconds, span } from "./format.js";
import { STALE, judge } from "./health.js";

export class Status {
  constructor(model, element) {
    this.model = model;
    this.verdict = h("strong", { class: "verdict" });
    this.since = h("span");
    this.margin = h("span", { title: "Of all holders, the one whose trust would end first if it weren't heard of again" });
    this.age = h("span", { title: "How long ago this page last heard from the server" });
    this.facts = h("span", { class: "facts" }, this.since, this.margin, this.age);
    // Only what the verdict says is read aloud, and only when it changes.
    this.aloud = h("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.element = element;
    fill(element, h("span", { class: "lamp", "aria-hidden": "true" }), h("p", { class: "sentence" }, this.verdict, this.facts), this.aloud);
    // Since when all is well, as far as this page has seen.
    this.wellSince = null;
    this.health = null;
  }

  // Judges anew; to be called a few times a second.
  update() {
    const { model } = this;
    const silent = performance.now() - model.lastBeat;
    if (model.refused) {
      this.#say("stale", model.refused, "", "", "");
      return;
    }
    if (!model.ready) {
      this.#say("wait", "Waiting for the server", "", "", "");
      return;
    }
    this.health = judge(model);
    const { level, least, leastOf } = this.health;
    this.#remember(level);
    const margin = least === null ? "" : `least margin ${seconds(least)} of ${span(leastOf.leader.ttl_ms)}`;
    if (silent > STALE) {
      const text = `Stale: no word from the server for ${span(silent)}`;
      this.#say("stale", text, `everything below is as of ${date(model.asOf)}`, "", "");
    } else if (model.storeError) {
      this.#say("stale", "The store doesn't answer", `everything below is as of ${date(model.asOf)}`, model.storeError, "");
    } else {
      this.#say(level, this.#sentence(), this.#sinceText(level), margin, `seen ${seconds(silent)} ago`);
    }
  }

  #remember(level) {
    const well = level === "ok";
    if (!well) this.wellSince = null;
    else this.wellSince ??= this.watching ? this.model.now() : 0;
    this.watching = true;
  }

  #sinceText(level) {
    if (level !== "ok") return "";
    const last = this.model.moves.at(-1)?.at_ms ?? 0;
    const since = Math.max(this.health.since, this.wellSince ?? 0, last);
    return since > 0 ? `for ${span(this.model.now() - since)}` : "";
  }

  #sentence() {
    const { level, led, leases, lines } = this.health;
    const { duties, counts } = this.model;
    if (level === "bad" || level === "warn") {
      const worst = lines.filter((line) => line.level === level).map((line) => line.brief);
      const said = worst.slice(0, 2).join(", ") + (worst.length > 2 ? `, and ${worst.length - 2} more` : "");
      // A name stays as it is.
      return /^(who|nobody) leads /.test(said) ? said.charAt(0).toUpperCase() + said.slice(1) : said;
    }
    const running = duties.size ? `${count(counts.active, "duty", "duties")} running` : "";
    if (level === "busy") return `${count(led, "lease")} led, ${running}, ${counts.assigning + counts.revoking} moving`;
    if (leases === 0 && duties.size === 0) return "There are no leases yet";
    const all = leases === 1 ? "The lease is led" : `All ${leases.toLocaleString("en")} leases led`;
    return running ? `${all}, ${running}` : all;
  }

  #say(level, verdict, since, margin, age) {
    setClass(this.element, `status ${level}`);
    setText(this.verdict, verdict);
    setText(this.since, since);
    setText(this.margin, margin);
    setText(this.age, age);
    if (this.told !== level) {
      this.told = level;
      setText(this.aloud, `${verdict}. ${since}`);
    }
    const mark = { ok: "●", busy: "●", bad: "▲", warn: "▲", stale: "○", wait: "○" }[level];
    const { cluster } = this.model.cluster ?? {};
    const title = `${mark} ${cluster ? `${plain(cluster)} · ` : ""}incumbent`;
    if (document.title !== title) document.title = title;
  }
}

// What needs attention, as links; nothing if all is well.
export function attention(element, health, wanted = 6) {
  const lines = health?.lines ?? [];
  element.hidden = lines.length === 0;
  const shown = lines.slice(0, wanted);
  if (lines.length > wanted) shown.push({ level: "note", text: `And ${lines.length - wanted} more.`, link: "#/leases" });
  list(
    element,
    shown,
    (line) => `${line.link} ${line.level}`,
    () => h("li", {}, h("span", { class: "dot" }), h("a")),
    (item, line) => {
      setClass(item.firstElementChild, `dot ${line.level}`);
      setText(item.lastElementChild, line.text);
      setAttribute(item.lastElementChild, "href", line.link);
    },
  );
}
