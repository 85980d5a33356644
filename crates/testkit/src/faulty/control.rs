use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent_core::store::Lane;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Fault, Faults};
use crate::Rng;
use crate::locked::locked;

/// What all handles under one set of faults share.
pub(super) struct Control {
    faults: Faults,
    rng: Mutex<Rng>,
    script: Mutex<VecDeque<(Option<Lane>, Fault)>>,
    counts: Mutex<BTreeMap<Fault, u64>>,
    cut: AtomicBool,
    overtaken: Notify,
    late: Mutex<JoinSet<()>>,
    late_left: AtomicUsize,
    late_landed: Notify,
}

/// What happens to one exchange.
pub(super) struct Fate {
    pub(super) timing: Option<Fault>,
    pub(super) delivery: Option<Fault>,
}

impl Control {
    pub(super) fn new(faults: Faults) -> Self {
        Self {
            rng: Mutex::new(Rng::new(faults.seed())),
            faults,
            script: Mutex::default(),
            counts: Mutex::default(),
            cut: AtomicBool::new(false),
            overtaken: Notify::new(),
            late: Mutex::new(JoinSet::new()),
            late_left: AtomicUsize::new(0),
            late_landed: Notify::new(),
        }
    }

    pub(super) fn script(&self, lane: Option<Lane>, fault: Fault) {
        locked(&self.script).push_back((lane, fault));
    }

    /// What happens to the next exchange of this lane: as scripted, or else as drawn.
    pub(super) fn fate(&self, lane: Lane) -> Fate {
        if let Some(fault) = self.scripted(lane) {
            return if Fault::TIMINGS.contains(&fault) {
                Fate { timing: Some(fault), delivery: None }
            } else {
                Fate { timing: None, delivery: Some(fault) }
            };
        }
        let mut rng = locked(&self.rng);
        Fate {
            timing: self.faults.draw(&Fault::TIMINGS, &mut rng),
            delivery: self.faults.draw(&Fault::DELIVERIES, &mut rng),
        }
    }

    /// Whether a hint is lost or repeated.
    pub(super) fn hint_fate(&self) -> Option<Fault> {
        self.faults.draw(&[Fault::HintLost, Fault::HintRepeated], &mut locked(&self.rng))
    }

    pub(super) fn coin(&self) -> bool {
        locked(&self.rng).chance(0.5)
    }

    pub(super) fn delay(&self) -> Duration {
        let longest = self.faults.longest_delay().as_micros().try_into().unwrap_or(usize::MAX);
        Duration::from_micros(locked(&self.rng).below(longest.saturating_add(1)) as u64)
    }

    pub(super) fn longest_delay(&self) -> Duration {
        self.faults.longest_delay()
    }

    pub(super) fn count(&self, fault: Fault) {
        *locked(&self.counts).entry(fault).or_default() += 1;
    }

    pub(super) fn counts(&self) -> BTreeMap<Fault, u64> {
        locked(&self.counts).clone()
    }

    pub(super) fn cut(&self, on: bool) {
        self.cut.store(on, Ordering::SeqCst);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// Lets the exchanges go that waited to be overtaken.
    pub(super) fn overtake(&self) {
        self.overtaken.notify_waiters();
    }

    pub(super) async fn overtaken(&self) {
        let _ = tokio::time::timeout(self.longest_delay(), self.overtaken.notified()).await;
    }

    /// Runs this after the caller has been answered.
    pub(super) fn later(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let landing = Landing(Arc::clone(self));
        self.late_left.fetch_add(1, Ordering::SeqCst);
        let mut late = locked(&self.late);
        while late.try_join_next().is_some() {}
        late.spawn(async move {
            let _landing = landing;
            work.await;
        });
    }

    /// Waits until all that is late has landed.
    pub(super) async fn quiet(&self) {
        loop {
            let mut landed = pin!(self.late_landed.notified());
            landed.as_mut().enable();
            if self.late_left.load(Ordering::SeqCst) == 0 {
                return;
            }
            landed.await;
        }
    }

    fn scripted(&self, lane: Lane) -> Option<Fault> {
        let mut script = locked(&self.script);
        let next = script.iter().position(|(only, _)| only.is_none_or(|only| only == lane))?;
        script.remove(next).map(|(_, fault)| fault)
    }
}

/// Counts a late exchange as landed, also when it panicked or was aborted.
struct Landing(Arc<Control>);

impl Drop for Landing {
    fn drop(&mut self) {
        self.0.late_left.fetch_sub(1, Ordering::SeqCst);
        self.0.late_landed.notify_waiters();
    }
}
