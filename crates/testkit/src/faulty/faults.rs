use std::collections::BTreeMap;
use std::time::Duration;

use crate::Rng;

/// One way in which the path to a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The exchange is not sent, and the error says so: unavailable.
    Unavailable,
    /// The exchange is not sent, but the error can't know: unknown.
    Unsent,
    /// The exchange is applied and the error can't know: unknown.
    Unacknowledged,
    /// The exchange is applied, no reply comes, and a time-out ends the wait: unknown.
    Silent,
    /// The error says unknown at once, and the exchange is applied some time later.
    Late,
    /// The exchange is delivered twice, and the reply to the first is returned. Harmless for a
    /// compare-and-swap of a version: the second finds another. (A repeated create may land
    /// after somebody else's delete.)
    Repeated,
    /// The exchange is sent after a while.
    Delayed,
    /// The exchange is held until another, sent after it, has overtaken it.
    Reordered,
    /// The exchange fell into a partition, see [`super::FaultyStore::cut`]. Never drawn.
    Cut,
    /// A hint doesn't come.
    HintLost,
    /// A hint comes twice.
    HintRepeated,
}

impl Fault {
    /// Faults that decide what becomes of an exchange.
    pub(super) const DELIVERIES: [Self; 6] = [
        Self::Unavailable,
        Self::Unsent,
        Self::Unacknowledged,
        Self::Silent,
        Self::Late,
        Self::Repeated,
    ];

    /// Faults that decide when an exchange is sent.
    pub(super) const TIMINGS: [Self; 2] = [Self::Delayed, Self::Reordered];
}

/// How often each fault happens, and from which seed that is drawn.
#[derive(Clone, Debug)]
pub struct Faults {
    seed: u64,
    odds: BTreeMap<Fault, f64>,
    delay: Duration,
}

impl Faults {
    /// No faults but those asked for by [`super::FaultyStore::fail_next`] and
    /// [`super::FaultyStore::cut`].
    #[must_use]
    pub fn none(seed: u64) -> Self {
        Self { seed, odds: BTreeMap::new(), delay: Duration::from_millis(10) }
    }

    /// A little of everything: one exchange in four or so fails, and as many are late.
    #[must_use]
    pub fn mixed(seed: u64) -> Self {
        let deliveries = Fault::DELIVERIES.map(|fault| (fault, 0.04));
        let timings = Fault::TIMINGS.map(|fault| (fault, 0.1));
        let hints = [Fault::HintLost, Fault::HintRepeated].map(|fault| (fault, 0.2));
        let odds = deliveries.into_iter().chain(timings).chain(hints).collect();
        Self { odds, ..Self::none(seed) }
    }

    /// Lets this fault happen with this probability. Of several that could strike one exchange,
    /// the first in the order of [`Fault`] does.
    #[must_use]
    pub fn with(mut self, fault: Fault, probability: f64) -> Self {
        self.odds.insert(fault, probability);
        self
    }

    /// The longest that a fault keeps an exchange waiting, 10 ms by default.
    #[must_use]
    pub fn delay(mut self, longest: Duration) -> Self {
        self.delay = longest;
        self
    }

    /// The seed that the faults are drawn from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn longest_delay(&self) -> Duration {
        self.delay
    }

    pub(super) fn draw(&self, among: &[Fault], rng: &mut Rng) -> Option<Fault> {
        among.iter().copied().find(|fault| self.strikes(*fault, rng))
    }

    fn strikes(&self, fault: Fault, rng: &mut Rng) -> bool {
        self.odds.get(&fault).is_some_and(|probability| rng.chance(*probability))
    }
}
