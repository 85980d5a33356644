//! How soon the next one leads after the leader was killed, told to end or asked to resign: processes that
//! use the library with a witness, beside what one compare-and-swap costs in the same run. And how soon
//! where nothing proves the leader's end, in its ttl, by how long it had led.
//!
//! ```sh
//! cargo bench -p incumbent-bench --bench succession                                       # on a SQLite file
//! cargo bench -p incumbent-bench --bench succession --features postgres -- --store URL    # elsewhere
//! ```
//!
//! `--way` chooses one: kill, terminate, resign, or vanish, which takes its time. `cargo xtask serve postgres`
//! starts a server.
#![cfg_attr(target_os = "linux", allow(missing_docs, reason = "nobody calls this"))]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("a witness needs Linux");
}

#[cfg(target_os = "linux")]
#[path = "succession/heir.rs"]
mod heir;
#[cfg(target_os = "linux")]
#[path = "succession/linux.rs"]
mod linux;
#[cfg(target_os = "linux")]
#[path = "succession/spread.rs"]
mod spread;

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    // The witness of an heir is this program, started again. Where nobody is to see an end, there is none.
    if std::env::args().all(|argument| argument != "--unseen") {
        incumbent::witness::init()?;
    }
    linux::main()
}
