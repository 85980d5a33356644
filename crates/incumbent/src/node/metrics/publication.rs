//! Numbers for the recorder of the `metrics` crate, once a second.
//!
//! The recorder is the application's, and may take any time. So it is called on a thread of its own, which nothing
//! waits for; as long as a call isn't back, no other is made (O3).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

use super::facade::Sheet;
use crate::Node;
use crate::driver::{clock, panic, thread};
use crate::node::Inner;

/// From one publication to the next.
const PERIOD: Duration = Duration::from_secs(1);

/// For as long as this is kept, a node's numbers are published. Afterwards its gauges say that it holds nothing.
#[derive(Debug)]
#[must_use = "dropping it ends the publication"]
pub struct Publication {
    _until: DropGuard,
}

impl Node {
    /// Publishes what [`Self::metrics`] says through the facade of the `metrics` crate, once a second, for as long as
    /// the [`Publication`] is kept and the node is there. Install the recorder before.
    ///
    /// docs/metrics.md has the names. Counters have all that was counted since the node joined, histograms what comes
    /// from now on. Gauges are up to a second old: decide nothing by them, and ask
    /// [`Term::is_held`](crate::Term::is_held) instead. A recorder that blocks or panics costs its own numbers, and
    /// never a beat.
    ///
    /// # Errors
    /// If incumbent's own threads can't be started, in a forked child for instance.
    pub fn publish_metrics(&self) -> std::io::Result<Publication> {
        let until = CancellationToken::new();
        thread::spawn_runner(publish(Arc::downgrade(&self.inner), until.clone()))?;
        Ok(Publication { _until: until.drop_guard() })
    }
}

async fn publish(node: Weak<Inner>, until: CancellationToken) {
    let sheet = Arc::new(Mutex::new(Sheet::default()));
    let busy = Arc::new(AtomicBool::new(false));
    while !until.is_cancelled() {
        if !busy.swap(true, Ordering::AcqRel) {
            // What it keeps alive goes with that thread too, and is the application's in part.
            let Some(inner) = node.upgrade() else { break };
            let (sheet, done) = (Arc::clone(&sheet), Arc::clone(&busy));
            let called = call(move || {
                with(&sheet, |sheet| sheet.publish(&Node { inner }));
                done.store(false, Ordering::Release);
            });
            if !called {
                busy.store(false, Ordering::Release);
            }
        }
        tokio::select! {
            () = until.cancelled() => {}
            () = thread::sleep_until(clock::now() + PERIOD) => {}
        }
    }
    // After the call that may be under way.
    call(move || with(&sheet, Sheet::end));
}

/// Calls the recorder where it may take any time; says whether it does.
fn call(publish: impl FnOnce() + Send + 'static) -> bool {
    thread::apart("incumbent-metrics", publish).is_ok()
}

/// A recorder that panics is called again a second later.
fn with(sheet: &Mutex<Sheet>, publish: impl FnOnce(&mut Sheet)) {
    let mut sheet = sheet.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = panic::contain(|| publish(&mut sheet));
}
