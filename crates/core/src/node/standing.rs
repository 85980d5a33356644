//! How a node stands for the lease of the cluster's leader.

use super::{Config, Elector, LeaseName, MemberId, Moment, Mutant, Owner};
use crate::lease::{Known, Lease};
use crate::names::LeaseKind;
use crate::records::{ClusterLead, MemberState, View};
use crate::stance::{Preference, Stance};

/// The members that the last view prefers as leaders, and what their nodes are called.
pub(crate) type PreferredMembers = Vec<(MemberId, String)>;

/// Whom this view prefers.
pub(super) fn preferred(view: &View) -> PreferredMembers {
    let alive = view.members.iter().filter(|entry| entry.state == MemberState::Alive);
    let preferred = alive.filter(|entry| entry.preferred);
    preferred.map(|entry| (entry.id.clone(), entry.node.clone())).collect()
}

impl Elector {
    /// Stands for the cluster's lease, or only follows it.
    pub(super) fn stand_for_cluster(&mut self, now: Moment) {
        let electable = self.config.cluster_lead() != ClusterLead::Never;
        let candidacy = Stance { electable, ..Stance::default() };
        self.campaign(now, LeaseName::leader(), candidacy);
    }

    /// Whether this node may come to lead the cluster.
    pub(super) fn may_lead_cluster(&self) -> bool {
        self.config.membership && self.config.cluster_lead() != ClusterLead::Never
    }
}

impl Config {
    fn cluster_lead(&self) -> ClusterLead {
        let ignored = self.planted.is(Mutant::NeverLeadsAllTheSame);
        if ignored { ClusterLead::Normal } else { self.profile.cluster_lead }
    }
}

impl Owner<'_> {
    /// How much this node holds back from a lease that is free. From the cluster's it holds back
    /// longer the worse it is fit to lead.
    pub(crate) fn preference(&self, lease: &Lease, want: &Stance) -> Preference {
        if lease.name.kind() != LeaseKind::Leader {
            return want.preference;
        }
        match self.config.cluster_lead() {
            ClusterLead::Never | ClusterLead::IfNeeded => Preference::Priority(0),
            ClusterLead::Normal if self.yields(lease) => Preference::Priority(u8::MAX / 2),
            ClusterLead::Normal => Preference::None,
        }
    }

    /// Whether another member that is alive is preferred, and this one isn't. Whoever had the lease
    /// last is not waited for: it is gone, or has just given it up.
    fn yields(&self, lease: &Lease) -> bool {
        let freed_by = match &lease.known {
            Known::Record(record, _) if record.holder.is_none() => record.changes.last(),
            Known::Record(..) | Known::Unread | Known::Absent | Known::Unreadable => None,
        };
        let is_former = |(id, node): &(MemberId, String)| {
            Some(id) == lease.holder() || freed_by.is_some_and(|change| change.node == *node)
        };
        !self.preferred.iter().any(|(id, _)| Some(id) == self.own_id())
            && self.preferred.iter().any(|member| !is_former(member))
    }
}
