/**
 * The Node.js client of `incumbent serve`: leases and duties, with nothing but the standard library.
 *
 * ```ts
 * const sidecar = new Sidecar("unix:/run/incumbent/incumbent.sock"); // or "http://127.0.0.1:7070"
 * await using hold = await sidecar.hold("scheduler", { name: "billing-1" }); // waits until this process leads
 * while (hold.isHeld()) await settleInvoices(hold.term, { signal: hold.signal });
 * ```
 */
export { Duty, Serving, type ServeOptions } from "./duties.js";
export { Hold, type HoldOptions } from "./hold.js";
export { Problem, Unreachable } from "./http.js";
export { Sidecar, type Lease } from "./sidecar.js";
