//! The line of those who wait for a slot within one node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Line, MutexGuard, Notify};

/// One line for each name, for all handles of a node.
#[derive(Debug, Default)]
pub(crate) struct Gates(Mutex<HashMap<String, Weak<Gate>>>);

/// A node stands for a lease once, so that one waiter contends at a time and the others wait for
/// their turn, first come, first served.
#[derive(Debug, Default)]
pub(super) struct Gate {
    line: Line<()>,
    released: Notify,
}

/// Tells the one who contends that it may stand for more, because a slot of this node was given
/// back or is tried no more, when it is dropped.
#[derive(Debug)]
pub(crate) struct Release(Arc<Gate>);

impl Gates {
    pub(super) fn of(&self, name: &str) -> Arc<Gate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(name).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::default());
        gates.insert(name.to_owned(), Arc::downgrade(&gate));
        gate
    }
}

impl Gate {
    /// Waits for the turn, which lasts until what this gives is dropped.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.line.lock().await
    }

    /// Waits until a slot was given back. One that was given back before counts too, so that none
    /// is missed; whoever has the turn is the only one to ask.
    pub(super) async fn released(&self) {
        self.released.notified().await;
    }
}

impl Release {
    pub(super) fn new(gate: &Arc<Gate>) -> Self {
        Self(Arc::clone(gate))
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        self.0.released.notify_one();
    }
}
