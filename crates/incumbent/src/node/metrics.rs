//! What a node has counted, as plain numbers: no dependency, no registry, no thread.
//!
//! [`Node::metrics`](crate::Node::metrics) reads them from memory, without a lock and without asking the store, as
//! often as anybody likes. `incumbent serve` has them as `/metrics`; docs/metrics.md has the names that they get there.
//! With the feature `metrics`, `Node::publish_metrics` hands them to the recorder of the crate of that name.

#[cfg(feature = "metrics")]
mod facade;
mod histogram;
mod meters;
mod placements;
#[cfg(feature = "metrics")]
mod publication;

use std::time::Duration;

pub use histogram::Histogram;
pub(crate) use meters::{LeaseMeter, LeaseMeters, Meters};
#[cfg(feature = "metrics")]
pub use publication::Publication;

use crate::driver::clock;
use crate::{Loss, Node};

/// What one node has counted since it joined first, and how it stands now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The cluster.
    pub cluster: String,
    /// The node.
    pub node: String,
    /// The leases that this node stands for or has stood for, in their order. Duties' own leases are not among them.
    pub leases: Vec<LeaseMetrics>,
    /// Beats that got through, and those that didn't.
    pub renewals: Renewals,
    /// How much longer this node may trust without another beat.
    pub trust_remaining: Duration,
    /// The longest that trust can last after a beat: the ttl without its margin.
    pub trust_span: Duration,
    /// The least that was left of it within the last minute. The margin: it shrinks long before a lease is lost.
    pub least_trust: Duration,
    /// What was left of the span of trust at each renewal, from 0 to 1.
    pub trust_left_at_renewal: Histogram,
    /// How long the store took to answer.
    pub store: Vec<StoreMetrics>,
    /// Wake-ups that the store has pushed, or other nodes where it pushes nothing.
    pub hints: u64,
    /// Datagrams that came to this process and were no hints for any of its nodes.
    pub hints_dropped: u64,
    /// How long plans took that this node has made as leader of the cluster, in seconds.
    pub plans: Histogram,
    /// Moves of duties that this node has planned as leader of the cluster, first placements included.
    pub moves: u64,
    /// How long duties had no place while this node led the cluster, all of them together.
    pub unplaced: Duration,
    /// Whether this node leads the cluster.
    pub leads_cluster: bool,
    /// Members that this node knows to be alive; 0 if it doesn't follow them.
    pub members: usize,
}

/// What a node has counted of one lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaseMetrics {
    /// Which one.
    pub lease: String,
    /// Whether this node holds it, as far as its trust says at this moment.
    pub held: bool,
    /// The last term that this node held; 0 if it never did.
    pub term: u64,
    /// How often this node was elected.
    pub won: u64,
    /// How often it lost the lease, by reason: those that have happened.
    pub lost: Vec<(&'static str, u64)>,
    /// How long nobody led it, as far as this node saw. What is under way counts.
    pub leaderless: Duration,
    /// How long each of these times was, in seconds.
    pub gaps: Histogram,
}

/// Beats by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renewals {
    /// Trust lasts longer than before.
    pub renewed: u64,
    /// Surely not applied.
    pub unavailable: u64,
    /// May have been applied.
    pub unknown: u64,
    /// The store's set-up is wrong.
    pub rejected: u64,
}

/// Exchanges with the store, by lane and outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreMetrics {
    /// `beat`, `change` or `watch`.
    pub lane: &'static str,
    /// `answered` or `failed`.
    pub outcome: &'static str,
    /// How long they took, in seconds.
    pub latency: Histogram,
}

impl Node {
    /// What this node has counted, and how it stands: for `/metrics` and dashboards.
    ///
    /// All of it is in memory: no request, no lock, nothing that could hold up a beat.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = incumbent::open("solo:").await?;
    /// # let node = incumbent::Node::builder().name("billing-1").join(store).await?;
    /// let mut campaign = node.campaign("scheduler")?;
    /// let leadership = campaign.elected().await?;
    /// let metrics = node.metrics();
    /// assert!(metrics.leases[0].held && metrics.leases[0].won == 1);
    /// assert!(metrics.least_trust <= metrics.trust_span);
    /// # drop(leadership);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let (shared, timing) = (&self.inner.shared, self.timing());
        let meters = &shared.meters;
        let trust_remaining = self.health().trust_left;
        let now = clock::now();
        Metrics {
            cluster: self.cluster().name().to_owned(),
            node: self.name().to_owned(),
            leases: meters.leases(now, |lease| self.is_leader(lease.as_str())),
            renewals: meters.renewals(),
            trust_remaining,
            trust_span: timing.ttl.saturating_sub(timing.margin),
            least_trust: meters
                .least(now)
                .map_or(trust_remaining, |least| least.min(trust_remaining)),
            trust_left_at_renewal: meters.left_at_renewal(),
            store: meters.store(),
            hints: meters.hints(),
            hints_dropped: meters.hints_dropped(),
            plans: meters.plans(),
            moves: meters.placements.moves(),
            unplaced: meters.placements.unplaced(now),
            leads_cluster: self.leads_cluster(),
            members: shared.members.load().iter().filter(|member| member.is_alive()).count(),
        }
    }
}

impl Loss {
    /// One word for it, as metrics and HTTP have it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        use crate::MemberState;
        match self {
            Self::WorkEnded => "ended",
            Self::Resigned => "resigned",
            Self::Withdrawn => "withdrawn",
            Self::Leaving => "left",
            Self::CannotTell => "cannot-tell",
            Self::Closed(MemberState::Expired) => "expired",
            Self::Closed(MemberState::Evicted) => "evicted",
            Self::Closed(MemberState::Alive | MemberState::Left) => "closed",
            Self::Vanished => "vanished",
            Self::Superseded => "superseded",
            Self::Stuck => "stuck",
            Self::Broken => "broken",
        }
    }
}
