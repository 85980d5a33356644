// What can be asked of a cluster. Each is a request of docs/http.md with the words to confirm it by.

import { path } from "./api.js";
import { confirm } from "./dialog.js";
import { fill, h } from "./dom.js";
import { CLUSTER_LEASE } from "./health.js";

// Buttons for actions; nothing where this server only looks.
export function actions(model, all, latest = (at) => all[at]) {
  // Until the server has said that it may be steered, nothing is offered.
  if (model.cluster?.read_only !== false || all.length === 0) return null;
  const button = (action, at) =>
    h("button", {
      type: "button",
      class: action.danger ? "button danger" : "button",
      "data-act": action.act,
      text: `${action.label}${action.choose ? "…" : ""}`,
      onclick: () => confirm(model, latest(at)),
    });
  return h("div", { class: "acts", role: "group", "aria-label": "Actions" }, all.map(button));
}

// Puts buttons into a place. They stay as long as they are the same, so that none goes away under a pointer. If one
// of those before had the focus, the one that took its place gets it.
export function showActions(place, model, all) {
  place.latest = all;
  const key = JSON.stringify([model.cluster?.read_only, all.map(({ act }) => act)]);
  if (place.shown === key) return;
  place.shown = key;
  const had = [...place.querySelectorAll("button")].indexOf(document.activeElement);
  fill(place, actions(model, all, (at) => place.latest[at]));
  if (had >= 0) (place.querySelectorAll("button")[had] ?? place.querySelector("button"))?.focus();
}

export function steerLease(lease, model) {
  if (!lease.leader) return [];
  const match = { "if-match": `"${lease.term}"` };
  const { node } = lease.leader;
  const others = () => model.nodeNames().filter((other) => other !== node);
  const cluster = lease.lease === CLUSTER_LEASE ? " Duties go on running meanwhile, and none is placed." : "";
  return [
    {
      act: "resign",
      label: "Resign",
      title: `Ask ${node} to give up ${lease.lease}?`,
      text: `It ends its work and frees the lease, and any candidate takes over. It may be ${node} again.${cluster}`,
      method: "POST",
      path: path("leases", lease.lease, "resign"),
      body: () => ({}),
      headers: match,
    },
    {
      act: "transfer",
      label: "Transfer",
      title: `Hand ${lease.lease} over from ${node}?`,
      text: `It ends its work and frees the lease; others hold back briefly for the node that you name.${cluster}`,
      choose: { label: "To which node", options: others },
      method: "POST",
      path: path("leases", lease.lease, "transfer"),
      body: (to) => ({ to }),
      headers: match,
    },
  ];
}

export function steerNode(member, model) {
  const { node } = member;
  if (member.state !== "alive") return [];
  const wish = (act, verb, on, text, danger) => ({
    act: on ? act : `un${act}`,
    label: on ? verb : `Un${act}`,
    title: `${on ? verb : `Un${act}`} ${node}?`,
    text,
    danger: danger && on,
    plan: () => ({ [on ? act : `un${act}`]: node }),
    method: on ? "PUT" : "DELETE",
    path: path("nodes", node, act),
    body: on ? () => ({}) : undefined,
  });
  const all = [
    member.cordoned
      ? wish("cordon", "Cordon", false, "It may get duties again.")
      : wish("cordon", "Cordon", true, "It gets no more duties, and keeps those it has."),
    member.drained
      ? wish("drain", "Drain", false, "Duties may come back to it.")
      : wish("drain", "Drain", true, "It is emptied as far as the others have room, and gets no more duties until it is undrained.", true),
    {
      act: "evict",
      label: "Evict",
      title: `Evict ${node}?`,
      text: "Its leases and duties go to others once its ttl has passed. A program joins again by itself; a command under `incumbent run` ends. For a node that hangs: one that works is better drained.",
      danger: true,
      method: "POST",
      path: path("members", member.id, "evict"),
      body: () => ({}),
    },
  ];
  return model.live().length > 1 || member.cordoned || member.drained ? all : all.filter((action) => action.act !== "evict");
}

export function steerDuty(duty, model) {
  const id = duty.duty;
  const others = () => model.nodeNames().filter((node) => node !== duty.node);
  const all = [];
  if (duty.state !== "paused") {
    all.push({
      act: "move",
      label: "Move",
      title: `Move ${id}?`,
      text: "It moves once. Later plans may move it again; to keep it there, pin it.",
      choose: { label: "To which node", options: others },
      plan: (to) => ({ move: id, to }),
      method: "POST",
      path: path("duties", id, "move"),
      body: (to) => ({ to }),
    });
  }
  if (duty.pinned) {
    all.push({ act: "unpin", label: "Unpin", title: `Unpin ${id}?`, text: "It may run on any node again.", method: "DELETE", path: path("duties", id, "pin") });
  } else {
    all.push({
      act: "pin",
      label: "Pin",
      title: `Pin ${id}?`,
      text: "It runs on that node whenever that is possible, and elsewhere while it isn't.",
      choose: { label: "To which node", options: () => model.nodeNames(), check: "There or nowhere" },
      plan: (to) => ({ pin: id, to }),
      method: "PUT",
      path: path("duties", id, "pin"),
      body: (node, required) => ({ node, required }),
    });
  }
  all.push(pause(duty));
  return all;
}

function pause(duty) {
  const id = duty.duty;
  if (duty.state === "paused") {
    return { act: "resume", label: "Resume", title: `Resume ${id}?`, text: "It is placed on a node again.", plan: () => ({ resume: id }), method: "DELETE", path: path("duties", id, "pause") };
  }
  return {
    act: "pause",
    label: "Pause",
    title: `Pause ${id}?`,
    text: "It stops and stays stopped, whoever leads, until it is resumed.",
    danger: true,
    plan: () => ({ pause: id }),
    method: "PUT",
    path: path("duties", id, "pause"),
    body: () => ({}),
  };
}

export function steerCluster(model) {
  const frozen = model.frozen();
  return [
    {
      act: frozen ? "thaw" : "freeze",
      label: frozen ? "Thaw" : "Freeze",
      title: frozen ? "Let duties move again to balance the load?" : "Freeze the placement?",
      text: frozen ? "Duties may move again to balance the load." : "Nothing moves just to balance the load. Duties of nodes that are gone still find a new place.",
      method: frozen ? "DELETE" : "PUT",
      path: "v1/freeze",
      body: frozen ? undefined : () => ({}),
    },
  ];
}

export function withdraw(intent, what) {
  return {
    act: "withdraw",
    label: "Take back",
    title: "Withdraw this?",
    text: `“${what}”, asked for by ${intent.by ?? "somebody"}, is no longer in force then.`,
    method: "DELETE",
    path: path("intents", intent.id),
  };
}
