//! What keeps a lease from being freed, given back only once nobody may trust in it any more,
//! whatever becomes of the task that has it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use incumbent::{Campaign, Leadership, Moment, Term, Unfreed, clock};

use crate::hold::Hold;

/// A lease that was won, and the campaign by which.
pub(crate) struct Won {
    // The order matters: the work has ended, and then its campaign is withdrawn.
    pub(crate) leadership: Leadership,
    pub(crate) campaign: Option<Campaign>,
}

/// It is kept for a hold. Dropped by a panic or together with its runtime, it waits for the end of
/// told trust on a thread of its own.
pub(crate) struct Kept<T: Send + 'static> {
    won: Option<T>,
    hold: Arc<Hold>,
}

impl<T: Send + 'static> Kept<T> {
    pub(crate) fn new(won: T, hold: &Arc<Hold>) -> Self {
        Self { won: Some(won), hold: Arc::clone(hold) }
    }

    /// Nothing of the client runs any more, or nobody trusts.
    pub(crate) fn let_go(mut self) {
        drop(self.won.take());
    }
}

impl Kept<Won> {
    pub(crate) fn term(&self) -> Option<Term> {
        self.won.as_ref().map(|won| won.leadership.term())
    }

    /// Nothing of the client runs any more, or nobody trusts: frees the lease, and waits until the
    /// store has confirmed it.
    pub(crate) async fn release(mut self) -> Result<(), Unfreed> {
        let Some(Won { leadership, campaign }) = self.won.take() else { return Ok(()) };
        if leadership.end().is_some_and(|lost| lost.abrupt) {
            return Ok(());
        }
        let freed = leadership.release().await;
        drop(campaign);
        freed
    }
}

impl<T: Send + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        let Some(won) = self.won.take() else { return };
        self.hold.ledger.close();
        let Some(told) = self.hold.ledger.told().filter(|told| clock::now() < *told) else {
            return;
        };
        let shared = Arc::new(Mutex::new(Some(won)));
        let waiting = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("incumbent-told".to_owned());
        let started = thread.spawn(move || {
            until(told);
            waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        });
        if started.is_err() {
            // Then it is held until this process ends, which is better than held twice.
            std::mem::forget(shared.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

fn until(told: Moment) {
    while clock::now() < told {
        let left = told.since(clock::now());
        std::thread::park_timeout(left.min(Duration::from_secs(1)));
    }
}
