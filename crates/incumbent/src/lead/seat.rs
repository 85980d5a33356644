//! For which leases a node stands, so that it stands once for each; and where the driver leaves a
//! leadership for the owner of a campaign.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use incumbent_core::LeaseName;
use tokio::sync::Notify;

use crate::error::Closed;
use crate::lead::hold::Hold;

/// The leases that a node stands for.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<HashSet<LeaseName>>);

impl Seats {
    /// Nothing if the node stands for the lease already.
    pub(crate) fn take(&self, lease: &LeaseName) -> Option<Arc<Seat>> {
        let news = self.with(|leases| leases.insert(lease.clone()));
        let lease = lease.clone();
        news.then(|| Arc::new(Seat { lease, slot: Mutex::default(), changed: Notify::new() }))
    }

    /// Lets the node stand for the lease anew.
    pub(crate) fn give_back(&self, seat: &Seat) {
        self.with(|leases| leases.remove(&seat.lease));
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashSet<LeaseName>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a campaign and the driver share. Holds at most one leadership that nobody has claimed yet. It is
/// no queue, so that one that is lost before it was claimed counts as ended at once.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) lease: LeaseName,
    slot: Mutex<Unclaimed>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Unclaimed {
    hold: Option<Arc<Hold>>,
    closed: bool,
}

impl Seat {
    pub(crate) fn put(&self, hold: Arc<Hold>) {
        let former = self.with(|slot| slot.hold.replace(hold));
        self.changed.notify_one();
        drop(former);
    }

    /// Takes what nobody has claimed. Whoever drops it says thereby that no work runs under it.
    pub(crate) fn take(&self) -> Option<Arc<Hold>> {
        self.with(|slot| slot.hold.take())
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.with(|slot| slot.closed = true);
        self.changed.notify_one();
    }

    /// Waits for a leadership. Cancel-safe: it stays here until it is claimed.
    pub(crate) async fn claim(&self) -> Result<Arc<Hold>, Closed> {
        loop {
            if let Some(hold) = self.take().filter(|hold| hold.tenure.is_held()) {
                return Ok(hold);
            }
            if self.with(|slot| slot.closed) {
                return Err(Closed);
            }
            self.changed.notified().await;
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Unclaimed) -> T) -> T {
        change(&mut self.slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
