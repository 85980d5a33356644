//! 19. A node that must never lead the cluster never does.

use incumbent_core::records::ClusterLead;
use incumbent_core::{ElectionEvent, LeaseName};

use super::{Invariant, Verdict};
use crate::scenario::Scenario;

pub(super) struct ClusterLeads {
    /// How each node stands for the cluster.
    stands: Vec<ClusterLead>,
}

impl ClusterLeads {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self { stands: scenario.nodes.iter().map(|node| node.cluster_lead).collect() }
    }
}

impl Invariant for ClusterLeads {
    fn experienced(&mut self, node: usize, event: &ElectionEvent, _: bool) -> Verdict {
        let ElectionEvent::Elected { lease, term, .. } = event else { return Ok(()) };
        if *lease == LeaseName::leader() && self.stands.get(node) == Some(&ClusterLead::Never) {
            return Err(format!(
                "node {} leads the cluster in term {term}, which it never shall",
                node + 1
            ));
        }
        Ok(())
    }
}
