//! What all programs under test share: their arguments, and the lines that they print.
//!
//! A program is started as `program URL NAME LEASE TTL_MS COUNT ASK_MS`, and prints, each with nanoseconds of
//! CLOCK_BOOTTIME: `begin` before its first attempt, `led` with a lease when it has that, `believes` each
//! ASK_MS while its answer to "do I lead?" is yes, and `lost` when it is no longer. On SIGTERM it resigns.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};

/// What a program is asked to do.
#[derive(Clone, Debug)]
pub struct Task {
    pub url: String,
    /// Its own name, as others of its kind know it.
    pub name: String,
    lease: String,
    pub ttl: Duration,
    count: usize,
    /// From one question to the next; zero where nobody wants to know.
    ask: Duration,
}

impl Task {
    pub fn read() -> Result<Self> {
        let mut arguments = std::env::args().skip(1);
        let mut next = |what: &'static str| {
            arguments
                .next()
                .with_context(|| format!("{what} is missing: URL NAME LEASE TTL_MS COUNT ASK_MS"))
        };
        Ok(Self {
            url: next("URL")?,
            name: next("NAME")?,
            lease: next("LEASE")?,
            ttl: Duration::from_millis(next("TTL_MS")?.parse()?),
            count: next("COUNT")?.parse()?,
            ask: Duration::from_millis(next("ASK_MS")?.parse()?),
        })
    }

    /// The leases that it shall take.
    pub fn leases(&self) -> Vec<String> {
        if self.count == 1 {
            return vec![self.lease.clone()];
        }
        (0..self.count).map(|number| format!("{}-{number}", self.lease)).collect()
    }

    /// How often a lease is renewed where that is the program's own business.
    pub fn renewal(&self) -> Duration {
        self.ttl / 3
    }

    /// How often a taken lease is tried where that is the program's own business.
    pub fn retry(&self) -> Duration {
        self.ttl / 10
    }

    /// It is about to try for the first time.
    pub fn begin(&self) {
        say(&format!("begin {}", now()));
    }

    /// It has a lease. Asks from now on whether that is so, until it isn't.
    pub async fn lead(&self, lease: &str, holds: impl Fn() -> bool) {
        say(&format!("led {} {lease}", now()));
        // Where nobody asks it has to notice all the same.
        let pause = if self.ask.is_zero() { Duration::from_secs(1) } else { self.ask };
        loop {
            let at = now();
            if !holds() {
                break;
            }
            if !self.ask.is_zero() {
                say(&format!("believes {at} {lease}"));
            }
            tokio::time::sleep(pause).await;
        }
        say(&format!("lost {} {lease}", now()));
    }
}

/// Nanoseconds of CLOCK_BOOTTIME.
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Prints a line at once. Who reads it may be gone, and then there is nobody to tell.
pub fn say(line: &str) {
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}

/// Waits for SIGTERM.
pub async fn terminated() -> Result<()> {
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}
