//! What a node can carry, and how it places duties while it leads the cluster.

use std::sync::Arc;
use std::time::Duration;

use super::Builder;
use crate::placement::{Place, Strategy};

impl Builder {
    /// The sum of the weights of the duties that this node may carry (any). What fits nowhere
    /// runs nowhere, and [`Cluster::duties`](crate::Cluster::duties) says why.
    #[must_use]
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// How many duties this node may run (any number).
    #[must_use]
    pub fn max_duties(mut self, duties: u32) -> Self {
        self.max_duties = Some(duties);
        self
    }

    /// How this node places duties while it leads the cluster (evenly). All nodes should be told
    /// the same, because any of them may lead.
    #[must_use]
    pub fn placement(mut self, strategy: Strategy) -> Self {
        self.placement.strategy = strategy;
        self
    }

    /// A placement for the duties of one family alone.
    #[must_use]
    pub fn family_placement(
        mut self,
        family: impl Into<String>,
        place: impl Place + 'static,
    ) -> Self {
        self.placement.families.insert(family.into(), Arc::new(place));
        self
    }

    /// Nothing moves for the sake of evenness before members and duties were the same for so
    /// long (a ttl). What runs nowhere is placed at once.
    #[must_use]
    pub fn rebalance_after(mut self, quiet: Duration) -> Self {
        self.placement.quiet = Some(quiet);
        self
    }

    /// How many duties move for the sake of evenness at once (1,000), and how many of them leave
    /// or reach one node (100); by default a tenth of all duties where that is more.
    #[must_use]
    pub fn rebalance_limits(mut self, per_round: usize, per_node: usize) -> Self {
        self.placement.per_round = Some(per_round);
        self.placement.per_node = Some(per_node);
        self
    }
}
