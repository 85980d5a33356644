// Puts the page together: follows the server's events, and shows the view that the address names.

import { get, hasToken, setCluster, setToken } from "./api.js";
import { Clusters, address } from "./clusters.js";
import { askForToken } from "./dialog.js";
import { DutyDetail, Duties } from "./duties.js";
import { empty, fill, h, name, setAttribute } from "./dom.js";
import { follow } from "./events.js";
import { LeaseDetail, Leases } from "./leases.js";
import { Log } from "./log.js";
import { Model } from "./model.js";
import { NodeDetail, Nodes } from "./nodes.js";
import { Overview } from "./overview.js";
import { Status } from "./status.js";

const VIEWS = { "": Overview, leases: Leases, nodes: Nodes, duties: Duties, log: Log };
const DETAILS = { leases: LeaseDetail, nodes: NodeDetail, duties: DutyDetail };
const ALL = ["cluster", "leases", "members", "duties", "intents", "moves", "beat"];

const place = (id) => document.getElementById(id);

let model = new Model();
let status = new Status(model, place("status"));
let view = null;
let detail = null;
let shown = null;
let stop = null;
// The cluster that the address names; null is the one that the server has joined.
let watched = null;
const clusters = new Clusters(place("cluster"), (cluster) => {
  history.pushState(null, "", address(cluster, shown.section));
  watch(cluster);
});
const dirty = new Set();
let scheduled = false;

// Addresses are `#/<section>/<name>?<filters>`.
function parse(hash) {
  const [where, query] = hash.replace(/^#\/?/, "").split("?");
  const [section, ...rest] = where.split("/");
  let id = rest.join("/");
  try {
    id = decodeURIComponent(id);
  } catch {
    // It isn't escaped as it should be; then it is taken as it is.
  }
  return { section: section in VIEWS ? section : "", id, query: Object.fromEntries(new URLSearchParams(query)) };
}

function setQuery(query) {
  const kept = Object.entries(query).filter(([, value]) => value);
  const text = new URLSearchParams(kept).toString();
  history.replaceState(null, "", `#/${shown.section}${text ? `?${text}` : ""}`);
}

function search(label, value, changed) {
  let typing;
  const input = h("input", {
    type: "search",
    class: "search",
    placeholder: label,
    "aria-label": label,
    value,
    spellcheck: "false",
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => changed(input.value.trim()), 80);
    },
  });
  return input;
}

// The heading of what is shown in detail, with the way back.
function heading(kind, text) {
  const title = h("h2", { tabindex: "-1" }, h("span", { class: "kind", text: kind }), name(text));
  const back = h("a", { class: "close", href: `#/${shown.section}`, "aria-label": "Close", title: "Close (Esc)" }, "×");
  return h("div", { class: "detail-head" }, title, back);
}

function go() {
  if (model.refused) return;
  const wanted = parse(location.hash);
  const context = { model, status, query: wanted.query, search, setQuery, heading };
  const moved = !shown || shown.section !== wanted.section || (!wanted.id && shown.search !== location.hash && !shown.id);
  const from = shown;
  shown = { ...wanted, search: location.hash };
  if (moved || !view) {
    view?.close();
    view = new VIEWS[wanted.section](context);
    fill(place("view"), view.element);
    if (model.ready) view.update(new Set(ALL));
    if (from && from.section !== wanted.section) scrollTo(0, 0);
  }
  showDetail(wanted, context, from);
  for (const link of document.querySelectorAll("#tabs a")) {
    setAttribute(link, "aria-current", link.dataset.section === wanted.section ? "page" : null);
  }
}

function showDetail(wanted, context, from) {
  const had = detail !== null;
  detail?.close();
  detail = null;
  document.body.classList.toggle("with-detail", Boolean(wanted.id));
  place("detail").hidden = !wanted.id;
  fill(place("detail"));
  if (wanted.id) {
    if (!had) shown.opener = document.activeElement?.getAttribute("href");
    else shown.opener = from?.opener;
    detail = new DETAILS[wanted.section]({ ...context, id: wanted.id });
    fill(place("detail"), detail.element);
    if (model.ready) detail.update(new Set(ALL));
    detail.element.querySelector("h2").focus({ preventScroll: true });
    if (matchMedia("(max-width: 999px)").matches) scrollTo(0, 0);
  } else if (had && from?.opener) {
    const link = [...document.querySelectorAll("#view a")].find((one) => one.getAttribute("href") === from.opener);
    (link ?? document.querySelector("#view h1"))?.focus();
  }
}

// Draws what changed, once a frame at most, and not at all where nobody looks.
function schedule() {
  if (scheduled) return;
  scheduled = true;
  const draw = () => {
    scheduled = false;
    const begun = performance.now();
    const changed = new Set(dirty);
    dirty.clear();
    status.update();
    if (changed.has("cluster") && model.cluster) showCluster();
    if (model.ready) {
      view?.update(changed);
      detail?.update(changed);
    }
    mark("incumbent-draw", begun, [...changed]);
  };
  if (document.hidden) setTimeout(draw, 1000);
  else requestAnimationFrame(draw);
}

// The time that a change took, for whoever looks with the browser's own tools: see benches/page.rs.
function mark(what, begun, detail) {
  performance.clearMeasures(what);
  performance.measure(what, { start: begun, detail });
}

function take(events) {
  const begun = performance.now();
  for (const event of events) {
    try {
      for (const part of model.take(event)) dirty.add(part);
      if (event.type === "state") readRest();
      if (event.type === "intents") readMembers().catch(() => {});
    } catch (error) {
      console.warn("An event could not be read", error);
    }
  }
  mark("incumbent-take", begun, events.map((event) => event.type));
  schedule();
}

// What isn't among the events: the server itself, and what moved before.
function readRest() {
  const asked = model;
  // The server knows itself at once, and has to read what moved.
  for (const [what, see] of [["v1/cluster", (cluster) => (model.cluster = cluster)], ["v1/history", ({ moves }) => model.addMoves(moves)]]) {
    get(what)
      .then((answer) => {
        if (asked !== model) return;
        see(answer);
        for (const part of ALL) dirty.add(part);
        schedule();
      })
      .catch(() => {});
  }
}

async function readMembers() {
  const asked = model;
  const { members, as_of_ms } = await get("v1/members");
  if (asked !== model) return;
  model.seeMembers(members, as_of_ms);
  dirty.add("members");
  schedule();
}

// How long ago holders and nodes were heard of isn't an event; it is asked for while somebody looks.
async function readAges() {
  const asked = model;
  const crowd = model.members.size > 200;
  try {
    if (!document.hidden && model.ready) {
      const leases = await get("v1/leases");
      if (asked === model) model.seeLeases(leases.leases, leases.as_of_ms);
      dirty.add("leases");
      schedule();
      if (!crowd || shown.section === "nodes") await readMembers();
    }
  } catch {
    // The first line says how old the page's knowledge is.
  }
  setTimeout(readAges, crowd ? 5000 : 1500);
}

async function refused(problem) {
  if (problem.status === 404 && problem.clusters) {
    lost(problem);
    // Asking again would be answered the same.
    await new Promise(() => {});
  }
  if (problem.status !== 401) return;
  const why = hasToken() ? "The one that was sent isn't known here." : "This server asks who you are.";
  setToken(await askForToken(why));
}

// The address names a cluster that isn't here.
function lost(problem) {
  model.refused = `There is no cluster ${watched} here`;
  const links = problem.clusters.map((cluster) => h("a", { class: "pill", href: address(cluster) }, name(cluster)));
  clusters.show(null, problem.clusters, false);
  fill(place("view"), h("div", { class: "panel" }, empty(`${model.refused}.`, "These are here:", h("span", { class: "pills center" }, links))));
  status.update();
}

function showCluster() {
  const { cluster } = model;
  clusters.show(cluster.cluster, cluster.clusters, cluster.read_only);
  // Where there are several, an address that is sent to others says which it is about.
  if (cluster.clusters.length > 1 && watched === null) {
    watched = cluster.cluster;
    history.replaceState(null, "", `?cluster=${encodeURIComponent(watched)}${location.hash}`);
  }
  const { textContent: before } = place("about");
  const about = `${cluster.store} · served by ${cluster.node} · incumbent ${cluster.version}`;
  if (before !== about) fill(place("about"), about);
}

// Begins to follow a cluster, from nothing.
function watch(cluster) {
  stop?.();
  watched = cluster;
  setCluster(cluster);
  // What was about to be confirmed was about another cluster.
  for (const dialog of document.querySelectorAll("dialog.confirmation")) dialog.close();
  const mine = (model = new Model());
  status = new Status(model, place("status"));
  view?.close();
  view = null;
  // What was on its way when another was chosen is of no interest any more.
  stop = follow((events) => mine === model && take(events), refused);
  go();
}

const named = () => new URLSearchParams(location.search).get("cluster");

function theme() {
  const order = ["auto", "light", "dark"];
  const button = place("theme");
  const kept = (() => {
    try {
      return localStorage.getItem("incumbent-theme");
    } catch {
      return null;
    }
  })();
  let at = Math.max(0, order.indexOf(kept));
  const apply = () => {
    document.documentElement.dataset.theme = order[at];
    fill(button, { auto: "◐", light: "○", dark: "●" }[order[at]]);
    button.setAttribute("aria-label", `Colours: ${order[at]}`);
    button.title = `Colours: ${order[at]}`;
  };
  button.addEventListener("click", () => {
    at = (at + 1) % order.length;
    apply();
    try {
      localStorage.setItem("incumbent-theme", order[at]);
    } catch {
      // It holds until the page is left.
    }
  });
  apply();
}

const SHORTCUTS = { o: "#/", l: "#/leases", n: "#/nodes", d: "#/duties", g: "#/log" };

function press(event) {
  const typing = event.target.closest("input, select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && shown.id) location.hash = `#/${shown.section}`;
  else if (event.key === "/") {
    const input = document.querySelector("#view .search");
    if (!input) return;
    event.preventDefault();
    input.focus();
  } else if (event.key === "c") clusters.open();
  else if (SHORTCUTS[event.key]) location.hash = SHORTCUTS[event.key];
}

place("skip").addEventListener("click", (event) => {
  event.preventDefault();
  place("view").focus();
});
theme();
addEventListener("hashchange", go);
addEventListener("popstate", () => named() !== watched && watch(named()));
addEventListener("keydown", press);
document.addEventListener("visibilitychange", schedule);
setInterval(() => {
  if (document.hidden) return;
  status.update();
  view?.tick();
  detail?.tick();
}, 250);
watch(named());
readAges();
