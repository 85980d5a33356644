//! Connections that are being closed.
//!
//! The last connection to close removes the index of the log and then the log itself. A process that
//! ends between these two leaves a log that nobody can read who may only look.

use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use incumbent_store_common::locked;

/// The threads of stores that were dropped.
static CLOSING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// How long to wait between two looks.
const STEP: Duration = Duration::from_millis(1);

/// Takes note of threads that end by themselves.
pub(crate) fn begun(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    let mut closing = locked(&CLOSING);
    closing.retain(|thread| !thread.is_finished());
    closing.extend(threads);
}

/// Waits until all stores of this process that were dropped are closed, but not much longer than this;
/// says whether they are. It is for the end of a program: one that exits meanwhile may leave a log without
/// its index, and then only a process that may write to the database can read it.
#[must_use]
pub fn until_closed(patience: Duration) -> bool {
    for _ in 0..patience.as_millis() / STEP.as_millis() {
        begun([]);
        if locked(&CLOSING).is_empty() {
            return true;
        }
        std::thread::park_timeout(STEP);
    }
    false
}
