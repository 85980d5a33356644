//! Until when an incarnation may believe that it is alive.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use incumbent_core::Moment;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::origin::Origin;
use crate::driver::{clock, thread};

/// One for each incarnation, shared by all terms that hang from it. The driver writes it, and
/// everyone else compares the clock with it when asked.
#[derive(Debug)]
pub(crate) struct Trust {
    until: AtomicU64,
    /// Wakes who waits for another end of trust.
    news: Notify,
    /// Somebody was told that trust is over before the driver noticed it.
    doubted: AtomicBool,
    /// Fires when trust is over, also if the driver is stuck.
    over: CancellationToken,
    /// A forked child doesn't trust.
    origin: Origin,
}

impl Trust {
    /// Begins to trust, and has the end watched on the thread of the runners: work must end then,
    /// whatever the driver does.
    pub(crate) fn start(until: Moment) -> Arc<Self> {
        let trust = Arc::new(Self {
            until: AtomicU64::new(until.as_nanos()),
            news: Notify::new(),
            doubted: AtomicBool::new(false),
            over: CancellationToken::new(),
            origin: Origin::here(),
        });
        let watched = planted(DriverMutant::WatchMissing)
            || thread::spawn_runner(watch(Arc::downgrade(&trust))).is_ok();
        if !watched {
            trust.end();
        }
        trust
    }

    #[inline]
    pub(crate) fn until(&self) -> Moment {
        if self.origin.is_here() { self.raw() } else { Moment::START }
    }

    /// Waits until trust ends at another moment than this one. Cancel-safe.
    pub(crate) async fn other_than(&self, known: Moment) -> Moment {
        loop {
            // Made before the look, so that no news is missed in between.
            let news = self.news.notified();
            let until = self.until();
            if until != known {
                return until;
            }
            news.await;
        }
    }

    /// Fires when trust is over.
    pub(crate) fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Trusts until another moment. Not if trust was over before: that is final. Says whether it
    /// wasn't.
    pub(crate) fn publish(&self, until: Moment) -> bool {
        let extend = |known: u64| (known != Moment::START.as_nanos()).then_some(until.as_nanos());
        let known = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, extend);
        if known.is_ok_and(|known| known != until.as_nanos()) {
            self.news.notify_waiters();
        }
        known.is_ok()
    }

    /// Ends all trust: no question is answered with yes from now on, and no work takes a step.
    /// Who waits for the end is told by [`Self::end`], once it is written down why it came.
    pub(crate) fn stop(&self) {
        self.until.store(Moment::START.as_nanos(), Ordering::Release);
        self.news.notify_waiters();
    }

    /// Ends all trust, and tells who waits for that.
    pub(crate) fn end(&self) {
        self.stop();
        self.over.cancel();
    }

    pub(crate) fn doubt(&self) {
        self.doubted.store(true, Ordering::Release);
    }

    /// Whether somebody doubted since this was last asked.
    pub(crate) fn take_doubt(&self) -> bool {
        self.doubted.load(Ordering::Acquire) && self.doubted.swap(false, Ordering::AcqRel)
    }

    fn raw(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// Ends trust if it has run out; otherwise says when to look again.
    fn lapse(&self) -> Option<Moment> {
        let until = self.raw();
        if clock::now() < until {
            return Some(until);
        }
        let (known, ended) = (until.as_nanos(), Moment::START.as_nanos());
        let order = Ordering::AcqRel;
        // A beat may have got through in this very moment.
        if self.until.compare_exchange(known, ended, order, Ordering::Acquire).is_err() {
            return Some(until);
        }
        self.doubt();
        self.news.notify_waiters();
        self.over.cancel();
        None
    }
}

async fn watch(trust: Weak<Trust>) {
    while let Some(until) = trust.upgrade().and_then(|trust| trust.lapse()) {
        thread::sleep_until(until).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_end_that_the_driver_has_not_noticed_is_final() {
        let trust = Trust::start(clock::now() + Duration::from_millis(20));
        pollster::block_on(trust.over().cancelled());
        assert!(trust.take_doubt(), "the driver must hear of it");
        assert!(!trust.publish(clock::now() + Duration::from_secs(60)));
        assert_eq!(trust.until(), Moment::START);
    }

    #[test]
    fn who_waits_for_another_end_is_woken_by_it_and_by_the_last() {
        let first = clock::now() + Duration::from_secs(60);
        let (second, trust) = (first + Duration::from_secs(1), Trust::start(first));
        let mut waiting = Box::pin(trust.other_than(first));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(trust.publish(first));
        assert!(waiting.as_mut().poll(&mut context).is_pending(), "that is no news");
        assert!(trust.publish(second));
        assert_eq!(pollster::block_on(waiting), second);
        assert_eq!(pollster::block_on(trust.other_than(first)), second, "it has come already");
        let mut waiting = Box::pin(trust.other_than(second));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        trust.stop();
        assert_eq!(pollster::block_on(waiting), Moment::START);
    }
}
