//! What a node can carry, and how it places duties while it leads the cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::records::ClusterLead;

use super::Builder;
use crate::driver::foreign::Foreign;
use crate::node::placement::{Grid, Place, Strategy};

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

    /// Whether this node is ready to lead the cluster ([`ClusterLead::Normal`]): to keep the list of
    /// members, and to place duties for all. It is a member all the same, serves families, and
    /// stands for its own leases.
    ///
    /// Any node can place the duties of all, because the lists of duties are in the store. But one
    /// of an old version places as that version does, with the strategy that *it* was told, and one
    /// that is likely to vanish makes everybody look for a leader again.
    ///
    /// What is preferred costs a delay at most: where the preferred ones are dead, another leads a
    /// third of the ttl later. A leader that does its work is not replaced by a preferred one that
    /// comes later.
    #[must_use]
    pub fn cluster_lead(mut self, lead: ClusterLead) -> Self {
        self.cluster_lead = lead;
        self
    }

    /// How this node places duties while it leads the cluster (evenly). All nodes should be told
    /// the same, because any of them may lead.
    #[must_use]
    pub fn placement(mut self, strategy: Strategy) -> Self {
        self.placement.strategy = match strategy {
            Strategy::Own(place) => Strategy::Own(Arc::new(Theirs(Foreign::new(place)))),
            ready_made => ready_made,
        };
        self
    }

    /// A placement for the duties of one family alone.
    #[must_use]
    pub fn family_placement(
        mut self,
        family: impl Into<String>,
        place: impl Place + 'static,
    ) -> Self {
        let place: Arc<dyn Place> = Arc::new(place);
        self.placement.families.insert(family.into(), Arc::new(Theirs(Foreign::new(place))));
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

/// A placement of the application's, which isn't dropped on incumbent's own threads.
struct Theirs(Foreign<Arc<dyn Place>>);

impl Place for Theirs {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        if let Some(place) = self.0.as_ref() {
            place.place(grid);
        }
    }
}

impl fmt::Debug for Theirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().fmt(f)
    }
}
