//! How much script a change costs in the page, in a cluster of 1,000 nodes and 10,000 duties.
//!
//! ```sh
//! cargo bench -p incumbent-serve --bench page                 # in headless Chromium
//! cargo bench -p incumbent-serve --bench page -- --rounds 30
//! cargo bench -p incumbent-serve --bench page -- --look       # only serves that cluster, to be looked at
//! ```
//!
//! Members and duties are records in a memory store, which change as they do when a node dies, when duties move and
//! when a lease changes hands. For each view and each change it says how long the page took to take the change in and
//! to draw it, by its marks `incumbent-take` and `incumbent-draw` and the clock: a machine that does something else
//! meanwhile makes it more. Beside that stands the median of the processor time of all scripts from the change until it
//! was shown, as the browser counts it, with the ticks, beats and readings of that time: the more the slower the server.
#![cfg_attr(target_os = "linux", allow(missing_docs, reason = "nobody calls this"))]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "page/crowd.rs"]
mod crowd;
#[cfg(target_os = "linux")]
#[path = "page/linux.rs"]
mod linux;

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}
