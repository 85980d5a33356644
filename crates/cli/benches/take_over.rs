//! How soon the next command starts after SIGKILL to the holder or to its command, beside what a
//! commit and the start of a process cost in the same run.
//!
//! ```sh
//! cargo bench -p incumbent-cli --bench take_over                     # on a SQLite file
//! cargo bench -p incumbent-cli --bench take_over -- --store URL      # elsewhere
//! ```
//!
//! Three times `incumbent run` with a ttl of 15 s; each round kills one process of the one that
//! leads, and starts another run. Every command looks for a lock that the one before has with all
//! that it started, so an overlap would be seen.
#![cfg_attr(target_os = "linux", allow(missing_docs, reason = "nobody calls this"))]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("run needs Linux");
}

#[cfg(target_os = "linux")]
#[path = "take_over/linux.rs"]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}
