//! Whoever has one of these may still be working under a term.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::driver::command::{Command, Commands};
use crate::driver::mutant::{DriverMutant, planted};
use crate::lead::tenure::Tenure;

/// Shared by a leadership and by all calls that run under it. When the last is dropped, the work
/// under the term has ended, and only then is the lease freed (F10).
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) tenure: Arc<Tenure>,
    commands: Commands,
    abstain: Mutex<Option<Duration>>,
    /// The driver was told.
    released: AtomicBool,
}

impl Hold {
    pub(crate) fn new(tenure: Arc<Tenure>, commands: Commands) -> Self {
        #[cfg(feature = "testing")]
        crate::testing::tenure_began(&tenure);
        Self { tenure, commands, abstain: Mutex::new(None), released: AtomicBool::new(false) }
    }

    /// Lets the lease be freed, whoever still works under the term: only where that is chosen.
    pub(crate) fn release(&self) {
        if self.released.swap(true, Ordering::AcqRel) {
            return;
        }
        let abstain = self.abstain.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (lease, term) = (self.tenure.lease.clone(), self.tenure.term);
        self.commands.send(Command::Stopped { lease, term, abstain });
    }

    /// Stands back for a while after this term, because its work failed.
    pub(crate) fn abstain(&self, pause: Duration) {
        *self.abstain.lock().unwrap_or_else(PoisonError::into_inner) = Some(pause);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if planted(DriverMutant::HoldNeverReleased) {
            return;
        }
        self.release();
    }
}
