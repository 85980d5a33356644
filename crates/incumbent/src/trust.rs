//! Until when an incarnation may believe that it is alive.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use incumbent_core::Moment;

/// One for each incarnation, shared by all terms that hang from it. The driver writes it, and
/// everyone else compares the clock with it when asked.
#[derive(Debug)]
pub(crate) struct Trust {
    until: AtomicU64,
    /// Somebody was told that trust is over before the driver noticed it.
    doubted: AtomicBool,
}

impl Trust {
    pub(crate) const fn new(until: Moment) -> Self {
        Self { until: AtomicU64::new(until.as_nanos()), doubted: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn until(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::Acquire))
    }

    pub(crate) fn publish(&self, until: Moment) {
        self.until.store(until.as_nanos(), Ordering::Release);
    }

    /// Ends all trust at once.
    pub(crate) fn end(&self) {
        self.publish(Moment::START);
    }

    pub(crate) fn doubt(&self) {
        self.doubted.store(true, Ordering::Release);
    }

    /// Whether somebody doubted since this was last asked.
    pub(crate) fn take_doubt(&self) -> bool {
        self.doubted.load(Ordering::Acquire) && self.doubted.swap(false, Ordering::AcqRel)
    }
}
