//! One term of one lease, as driver and program share it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use incumbent_core::{LeaseName, MemberId, Moment};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::loss::{Loss, Lost};
use crate::trust::Trust;

#[derive(Debug)]
pub(crate) struct Grip {
    pub(crate) lease: LeaseName,
    pub(crate) term: u64,
    pub(crate) member: MemberId,
    trust: Arc<Trust>,
    /// Set before anybody is told, and never unset: once an answer was no, all are.
    over: AtomicBool,
    lost: OnceLock<(Lost, Moment)>,
    /// Fires when the work shall end.
    ending: CancellationToken,
    /// Fires when the work must end at once.
    aborting: CancellationToken,
}

impl Grip {
    pub(crate) fn new(lease: LeaseName, term: u64, member: MemberId, trust: Arc<Trust>) -> Self {
        Self {
            lease,
            term,
            member,
            trust,
            over: AtomicBool::new(false),
            lost: OnceLock::new(),
            ending: CancellationToken::new(),
            aborting: CancellationToken::new(),
        }
    }

    /// Whether the lease is held now. The clock is read after trust and before `over`, so that a
    /// yes was true at the moment of that reading.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        let until = self.trust.until();
        let trusted = clock::now() < until;
        if trusted && !self.over.load(Ordering::Acquire) {
            return true;
        }
        self.deny();
        false
    }

    /// Makes a no stick, and lets the driver know if it was the first to be said.
    #[cold]
    fn deny(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.trust.doubt();
        }
    }

    /// Whether somebody was told that the term is over although the driver has not ended it.
    pub(crate) fn is_doubted(&self) -> bool {
        self.over.load(Ordering::Acquire) && self.lost.get().is_none()
    }

    /// Until when work that is told to end may go on ending.
    pub(crate) fn until(&self) -> Moment {
        if self.aborting.is_cancelled() { Moment::START } else { self.trust.until() }
    }

    /// Ends the term; says whether this is news.
    pub(crate) fn end(&self, why: Loss, abrupt: bool) -> bool {
        self.over.store(true, Ordering::Release);
        let news = self.lost.set((Lost { why, abrupt }, clock::now())).is_ok();
        self.ending.cancel();
        if abrupt {
            self.aborting.cancel();
        }
        news
    }

    /// Trust is over while the work was still ending.
    pub(crate) fn abort(&self) {
        self.aborting.cancel();
    }

    /// How the term ended, if it has.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.lost.get().map(|(lost, _)| *lost)
    }

    /// When the work was told to end, if it was.
    pub(crate) fn lost_at(&self) -> Option<Moment> {
        self.lost.get().map(|(_, at)| *at)
    }

    /// Whether trust is over, so that the work must have ended at once.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborting.is_cancelled()
    }

    pub(crate) async fn ended(&self) -> Lost {
        self.ending.cancelled().await;
        // It was set before the token fired.
        self.lost().unwrap_or(Lost { why: Loss::CannotTell, abrupt: true })
    }

    pub(crate) async fn aborted(&self) {
        self.aborting.cancelled().await;
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.ending.child_token()
    }
}
