// Requests to the server that this page came from, and to no other.

// The API is beside the folder of this file, wherever the router is mounted.
const base = new URL("../", import.meta.url);
const TOKEN = "incumbent-token";

// The cluster that is looked at, if the server has several; and the token, for as long as this tab is open.
const session = { cluster: null, token: read() };

function read() {
  try {
    return sessionStorage.getItem(TOKEN);
  } catch {
    return null;
  }
}

export function setToken(token) {
  session.token = token || null;
  try {
    if (token) sessionStorage.setItem(TOKEN, token);
    else sessionStorage.removeItem(TOKEN);
  } catch {
    // It is kept in memory then.
  }
}

export function hasToken() {
  return session.token !== null;
}

export function setCluster(cluster) {
  session.cluster = cluster;
}

// What the server said no to, in its own words.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.code = body.code ?? "";
    this.changed = body.changed ?? "unknown";
    this.clusters = body.clusters ?? null;
  }
}

export function path(...parts) {
  return `v1/${parts.map(encodeURIComponent).join("/")}`;
}

function address(where, query) {
  const url = new URL(where, base);
  for (const [key, value] of Object.entries(query ?? {})) url.searchParams.set(key, value);
  // How all clusters stand is about none of them.
  if (session.cluster && where !== "v1/clusters") url.searchParams.set("cluster", session.cluster);
  return url;
}

// Sends a request, and answers with the response if it is a good one.
export async function send(method, where, { query, body, headers, signal } = {}) {
  const all = { ...headers };
  if (session.token) all.authorization = `Bearer ${session.token}`;
  if (body !== undefined) all["content-type"] = "application/json";
  const response = await fetch(address(where, query), {
    method,
    headers: all,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    signal,
  });
  if (response.ok) return response;
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // The status has to do.
  }
  throw new Problem(response.status, problem);
}

export async function get(where, query, signal) {
  return (await send("GET", where, { query, signal })).json();
}
