//! What belongs to the application, and so does dropping it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;

use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::thread;

/// Something of the application's that is never dropped on a thread of incumbent's own: what its
/// `Drop` does may take any time (O3).
#[derive(Debug)]
pub(crate) struct Foreign<T: Send + 'static> {
    value: Option<T>,
    /// Where it comes from, and may start something when it is dropped.
    runtime: Option<Handle>,
}

impl<T: Send + 'static> Foreign<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), runtime: Handle::try_current().ok() }
    }

    /// It is always there until this is dropped.
    pub(crate) fn as_ref(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

impl<T: Send + 'static> Drop for Foreign<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            let runtime = self.runtime.take();
            drop_elsewhere(Within { value: Some(value), runtime });
        }
    }
}

/// A value that is dropped within a runtime.
struct Within<T> {
    value: Option<T>,
    runtime: Option<Handle>,
}

impl<T> Drop for Within<T> {
    fn drop(&mut self) {
        let _entered = self.runtime.as_ref().map(Handle::enter);
        drop(self.value.take());
    }
}

/// Drops a value here, or on a thread of its own if this is one of incumbent's. If its `Drop` panics,
/// that costs nobody anything.
pub(crate) fn drop_elsewhere<T: Send + 'static>(value: T) {
    if !thread::is_own() || planted(DriverMutant::DroppedHere) {
        return drop_contained(value);
    }
    let here = Arc::new(Mutex::new(Some(value)));
    let there = Arc::clone(&here);
    let started = thread::apart("incumbent-drop", move || {
        drop_contained(there.lock().unwrap_or_else(PoisonError::into_inner).take());
    });
    if started.is_err() {
        // Better that it is never dropped than that a beat waits for it.
        std::mem::forget(here);
    }
}

fn drop_contained<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // What was thrown may throw again.
        std::mem::forget(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct Tells(mpsc::Sender<Option<String>>);

    impl Drop for Tells {
        fn drop(&mut self) {
            assert!(Handle::try_current().is_ok(), "it may start a task where it comes from");
            let _ = self.0.send(std::thread::current().name().map(str::to_owned));
        }
    }

    #[tokio::test]
    async fn o3_nothing_foreign_is_dropped_on_own_threads() {
        let (sender, names) = mpsc::channel();
        let value = Foreign::new(Tells(sender));
        thread::spawn(async move { drop(value) }).unwrap();
        assert_eq!(names.recv().unwrap().as_deref(), Some("incumbent-drop"));
    }
}
