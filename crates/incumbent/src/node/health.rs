//! How a node is doing, read from memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use incumbent_core::Moment;

use crate::driver::clock;
use crate::lead::trust::Trust;

/// How a node is doing at this moment; see [`Node::health`](crate::Node::health).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether the node takes part.
    pub standing: Standing,
    /// How long ago the last beat was sent that the store has acknowledged. Of a node that is well
    /// it is about a third of the ttl at most.
    pub last_beat: Duration,
    /// How much longer the node may trust without another beat. Zero if it isn't a member now.
    pub trust_left: Duration,
    /// Whether the store answers.
    pub store: StoreHealth,
    /// How long ago the thread that beats last looked after this node. It does so once a second at
    /// least; more than a few seconds mean that it is blocked, or that the whole process stood
    /// still. It stops when the node has left, and pauses for up to a minute after a panic in
    /// incumbent itself.
    pub last_turn: Duration,
}

/// Whether a node takes part in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// It is a member.
    Member,
    /// Its last incarnation is over, and it is about to join anew.
    Rejoining,
    /// It has left for good.
    Left,
}

/// Whether a node's store answers, over all that the node asks of it.
///
/// One exchange that fails is enough for [`Self::Fails`]; the store has to answer for five seconds
/// without another failure to be well again, or a minute if what failed isn't asked any more. The log and [`Event::StoreFails`] and
/// [`Event::StoreAnswers`] go by the same rule.
///
/// [`Event::StoreFails`]: crate::Event::StoreFails
/// [`Event::StoreAnswers`]: crate::Event::StoreAnswers
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreHealth {
    /// It answers.
    Answers,
    /// It fails, always or now and then.
    Fails {
        /// How long ago the first failure was noticed.
        lasts: Duration,
        /// The last error.
        error: String,
    },
}

/// What a driver writes down about itself, for everyone to read without a lock.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    turned: AtomicU64,
    beat: AtomicU64,
    trust: ArcSwapOption<Trust>,
    failure: ArcSwapOption<Failure>,
}

/// Since when the store fails, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) since: Moment,
    pub(crate) error: String,
}

impl Pulse {
    /// The driver has looked after its node.
    pub(crate) fn turn(&self, now: Moment) {
        self.turned.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// A beat that was sent then has been acknowledged.
    pub(crate) fn beat(&self, sent: Moment) {
        self.beat.store(sent.as_nanos(), Ordering::Relaxed);
    }

    /// All trust hangs from this from now on.
    pub(crate) fn trust(&self, trust: &Arc<Trust>) {
        self.trust.store(Some(Arc::clone(trust)));
    }

    pub(crate) fn store(&self, failure: Option<Failure>) {
        self.failure.store(failure.map(Arc::new));
    }

    pub(crate) fn health(&self, standing: Standing) -> Health {
        let read = |moment: &AtomicU64| Moment::from_nanos(moment.load(Ordering::Relaxed));
        let (turned, beat) = (read(&self.turned), read(&self.beat));
        let until = self.trust.load().as_ref().map_or(Moment::START, |trust| trust.until());
        let failure = self.failure.load_full();
        // Read last, so that no age is of the future.
        let now = clock::now();
        Health {
            standing,
            last_beat: now.since(beat),
            trust_left: until.since(now),
            store: failure.map_or(StoreHealth::Answers, |failure| StoreHealth::Fails {
                lasts: now.since(failure.since),
                error: failure.error.clone(),
            }),
            last_turn: now.since(turned),
        }
    }
}
