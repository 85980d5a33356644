//! One term of one lease, as driver and program share it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use incumbent_core::{LeaseName, MemberId, Moment};
use tokio_util::sync::CancellationToken;

use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::{clock, thread};
use crate::lead::futures::Futures;
use crate::lead::loss::{Loss, Lost};
use crate::lead::trust::Trust;

#[derive(Debug)]
pub(crate) struct Tenure {
    pub(crate) lease: LeaseName,
    pub(crate) term: u64,
    pub(crate) member: MemberId,
    trust: Arc<Trust>,
    /// Set before anybody is told, and never unset: once an answer was no, all are.
    over: AtomicBool,
    /// Set when this term alone was lost at once, although its member may still be trusted.
    cut: AtomicBool,
    /// Set when the work under it is over.
    closed: AtomicBool,
    /// When the work last reported progress; 0 before it has started.
    progress: AtomicU64,
    /// Set when it has reported none for too long.
    stuck: AtomicBool,
    lost: OnceLock<(Lost, Moment)>,
    /// Made for whoever is the first to wait: a term that is only asked takes a third of the memory.
    signals: OnceLock<Box<Signals>>,
}

/// What can be waited for. Each fires after the mark that says the same was set.
#[derive(Debug)]
struct Signals {
    /// Fires when the work shall end.
    ending: CancellationToken,
    /// Fires when the work must end at once. As the former, it fires by itself when trust is over.
    aborting: CancellationToken,
    /// Fires when the work is over, and with it all that it put under the term.
    closing: CancellationToken,
    /// How many futures run under the term.
    futures: Arc<Futures>,
}

impl Tenure {
    pub(crate) fn new(lease: LeaseName, term: u64, member: MemberId, trust: Arc<Trust>) -> Self {
        Self {
            lease,
            term,
            member,
            over: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            progress: AtomicU64::new(0),
            stuck: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            lost: OnceLock::new(),
            signals: OnceLock::new(),
            trust,
        }
    }

    fn signals(&self) -> &Signals {
        let signals = self.signals.get_or_init(|| {
            let aborting = self.trust.over().child_token();
            let (ending, closing) = (self.trust.over().child_token(), aborting.child_token());
            Box::new(Signals { ending, aborting, closing, futures: Arc::default() })
        });
        // Here signals are there before the marks are looked at, in `fire` the mark is set before it is
        // looked for signals: so no mark is missed on both sides.
        fence(Ordering::SeqCst);
        if self.cut.load(Ordering::Acquire) {
            signals.aborting.cancel();
        }
        if self.lost.get().is_some() {
            signals.ending.cancel();
        }
        if self.closed.load(Ordering::Acquire) {
            signals.closing.cancel();
        }
        signals
    }

    /// Tells those who wait, if there are any, of a mark that was set.
    fn fire(&self, signal: impl FnOnce(&Signals) -> &CancellationToken) {
        fence(Ordering::SeqCst);
        if let Some(signals) = self.signals.get() {
            signal(signals).cancel();
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

    /// Whether work may take a step: trust lasts, also while work that was told to end in order
    /// does so. A no is as final as one of [`Self::is_held`].
    #[inline]
    pub(crate) fn is_trusted(&self) -> bool {
        let until = self.until();
        if clock::now() < until {
            return true;
        }
        self.deny();
        false
    }

    /// What the two questions would be answered at this moment, without making a no stick.
    #[cfg(feature = "testing")]
    pub(crate) fn peek(&self, now: Moment) -> (bool, bool) {
        let (over, trust) = (self.over.load(Ordering::Acquire), self.trust.until());
        (now < trust && !over, now < self.until())
    }

    /// Loses the term at once, as if trust had run out.
    #[cfg(feature = "testing")]
    pub(crate) fn lose(&self) {
        self.abort();
        self.deny();
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
        // Trust may be over before those who wait for that are told.
        let denied = self.over.load(Ordering::Acquire)
            || self.is_aborted()
            || self.trust.until() == Moment::START;
        denied && self.lost.get().is_none()
    }

    /// Until when work that is told to end may go on ending.
    #[inline]
    pub(crate) fn until(&self) -> Moment {
        if self.cut.load(Ordering::Acquire) { Moment::START } else { self.trust.until() }
    }

    /// Waits until [`Self::until`] is another moment than this one. Cancel-safe.
    pub(crate) async fn other_until(&self, known: Moment) -> Moment {
        tokio::select! {
            biased;
            // Either the term was cut before this fired, or trust is over.
            () = self.aborted() => Moment::START,
            until = self.trust.other_than(known) => until,
        }
    }

    /// Ends the term; says whether this is news.
    pub(crate) fn end(&self, why: Loss, abrupt: bool) -> bool {
        self.over.store(!planted(DriverMutant::EndedStillHeld), Ordering::Release);
        let news = self.lost.set((Lost { why, abrupt }, clock::now())).is_ok();
        if abrupt {
            self.abort();
        }
        self.fire(|signals| &signals.ending);
        news
    }

    /// Trust is over while the work was still ending.
    pub(crate) fn abort(&self) {
        self.cut.store(true, Ordering::Release);
        self.fire(|signals| &signals.aborting);
    }

    /// The work is over, and with it all that it put under the term.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.fire(|signals| &signals.closing);
    }

    /// The work has started, or has come on.
    pub(crate) fn progressed(&self) {
        self.progress.fetch_max(clock::now().as_nanos(), Ordering::AcqRel);
    }

    /// The work is started again, and promises nothing until it has.
    pub(crate) fn not_started(&self) {
        self.progress.store(0, Ordering::Release);
        self.stuck.store(false, Ordering::Release);
    }

    /// Ready once the work has reported no progress for so long, counted from its start.
    pub(crate) async fn stuck(&self, patience: Option<Duration>) {
        let Some(patience) = patience else { return std::future::pending().await };
        loop {
            let (last, now) = (self.progress.load(Ordering::Acquire), clock::now());
            let due = if last == 0 { now } else { Moment::from_nanos(last) } + patience;
            if now >= due && last != 0 {
                return self.stuck.store(true, Ordering::Release);
            }
            // A patience of nothing must not spin while the work starts.
            thread::sleep_until(due.max(now + Duration::from_millis(1))).await;
        }
    }

    /// Whether it was ended because it came to nothing.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
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
        self.cut.load(Ordering::Acquire) || self.trust.over().is_cancelled()
    }

    pub(crate) async fn ended(&self) -> Lost {
        self.signals().ending.cancelled().await;
        // Either it was set before the token fired, or trust ran out and the driver is late.
        self.lost().unwrap_or(Lost { why: Loss::CannotTell, abrupt: true })
    }

    pub(crate) async fn aborted(&self) {
        self.signals().aborting.cancelled().await;
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.signals().ending.child_token()
    }

    /// Fires when the work under the term is over.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.signals().closing
    }

    /// How many futures run under the term.
    pub(crate) fn futures(&self) -> &Arc<Futures> {
        &self.signals().futures
    }

    /// Fires when whatever runs under the term must end at once.
    pub(crate) fn abort_token(&self) -> CancellationToken {
        self.signals().aborting.child_token()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenure() -> Tenure {
        let trust = Trust::start(clock::now() + Duration::from_secs(60));
        Tenure::new(LeaseName::new("scheduler").unwrap(), 1, MemberId::new("m"), trust)
    }

    #[test]
    fn who_waits_only_after_the_end_is_told_at_once() {
        let tenure = tenure();
        assert!(tenure.end(Loss::Resigned, false));
        assert!(tenure.token().is_cancelled());
        assert!(!tenure.is_aborted() && !tenure.abort_token().is_cancelled(), "it ends in order");
        assert_eq!(pollster::block_on(tenure.ended()).why, Loss::Resigned);
        tenure.close();
        assert!(tenure.closing().is_cancelled());
    }

    #[test]
    fn who_waits_already_is_told_of_each_stage() {
        let tenure = tenure();
        let (token, abort, closing) =
            (tenure.token(), tenure.abort_token(), tenure.closing().clone());
        assert!(tenure.end(Loss::Resigned, false));
        assert!(token.is_cancelled() && !abort.is_cancelled() && !closing.is_cancelled());
        tenure.abort();
        assert!(abort.is_cancelled() && closing.is_cancelled());
    }

    #[test]
    fn what_is_cut_before_anybody_waits_is_aborted_for_those_who_come() {
        let tenure = tenure();
        tenure.abort();
        assert!(tenure.is_aborted() && tenure.abort_token().is_cancelled());
        pollster::block_on(tenure.aborted());
        let tenure = self::tenure();
        tenure.trust.end();
        assert!(
            tenure.is_aborted() && tenure.token().is_cancelled() && tenure.closing().is_cancelled()
        );
    }
}
