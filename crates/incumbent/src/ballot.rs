//! Where the driver leaves a leadership for the owner of a campaign.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::error::Closed;
use crate::hold::Hold;

/// Holds at most one leadership that nobody has claimed yet. It is a slot and no queue, so that
/// one that is lost before it was claimed counts as ended at once.
#[derive(Debug, Default)]
pub(crate) struct Ballot {
    slot: Mutex<Slot>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    unclaimed: Option<Arc<Hold>>,
    closed: bool,
}

impl Ballot {
    pub(crate) fn put(&self, hold: Arc<Hold>) {
        let former = self.with(|slot| slot.unclaimed.replace(hold));
        self.changed.notify_one();
        drop(former);
    }

    /// Takes what nobody has claimed. Whoever drops it says thereby that no work runs under it.
    pub(crate) fn take(&self) -> Option<Arc<Hold>> {
        self.with(|slot| slot.unclaimed.take())
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.with(|slot| slot.closed = true);
        self.changed.notify_one();
    }

    /// Waits for a leadership. Cancel-safe: it stays here until it is claimed.
    pub(crate) async fn claim(&self) -> Result<Arc<Hold>, Closed> {
        loop {
            if let Some(hold) = self.take().filter(|hold| hold.grip.is_held()) {
                return Ok(hold);
            }
            if self.with(|slot| slot.closed) {
                return Err(Closed);
            }
            self.changed.notified().await;
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Slot) -> T) -> T {
        change(&mut self.slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
