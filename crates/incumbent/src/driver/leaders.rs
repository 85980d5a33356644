//! Who leads the leases that this node stands for or follows.

use std::sync::Arc;

use incumbent_core::LeaseName;

use super::Driver;
use crate::cluster::Leader;
use crate::driver::clock;
use crate::lead::known::LeaderSeen;
use crate::node::event::Event;
use crate::node::shared::Sights;

/// What was last seen of each lease.
#[derive(Default)]
pub(super) struct Leaders {
    /// Shared with those who read it until it changes, and copied then.
    sights: Arc<Sights>,
    /// Something is to be published.
    changed: bool,
}

impl Leaders {
    pub(super) fn forget(&mut self, lease: &LeaseName) {
        if self.sights.contains_key(lease) {
            Arc::make_mut(&mut self.sights).remove(lease);
            self.changed = true;
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.changed |= !self.sights.is_empty();
        self.sights = Arc::default();
    }

    /// The leaders that are known, in the order of their leases.
    pub(super) fn known(&self) -> Vec<(LeaseName, Leader)> {
        let known = |(lease, sight): (&LeaseName, &Arc<LeaderSeen>)| {
            Some((lease.clone(), sight.leader.clone()?))
        };
        let mut leaders: Vec<_> = self.sights.iter().filter_map(known).collect();
        leaders.sort_by(|(one, _), (other, _)| one.cmp(other));
        leaders
    }
}

impl Driver {
    /// Takes in what the last answers showed.
    pub(super) fn sight_leaders(&mut self) {
        for lease in self.core.sighted() {
            let Some(sighting) = self.core.sighting(&lease) else { continue };
            match self.leaders.sights.get(&lease) {
                Some(sight) if sight.is_same(&sighting) => sight.renew(sighting.seen),
                Some(_) | None => self.sight_leader(lease),
            }
        }
    }

    /// Takes in who leads this lease, and tells if that is somebody else than before.
    pub(super) fn sight_leader(&mut self, lease: LeaseName) {
        let Some(sighting) = self.core.sighting(&lease) else { return };
        let sight = LeaderSeen::new(sighting, self.config.timing.ttl);
        self.saw_leader(lease, sight);
    }

    /// This node leads no more: that is known before anything is read.
    pub(super) fn lost_leader(&mut self, lease: LeaseName) {
        self.saw_leader(lease, LeaderSeen::nobody(clock::now()));
    }

    fn saw_leader(&mut self, lease: LeaseName, sight: LeaderSeen) {
        if !self.campaigns.contains_key(&lease) {
            // It was withdrawn meanwhile, and is not followed any more.
            return;
        }
        if let Some(meter) = self.counting.lease(&lease) {
            meter.saw(clock::now(), sight.leader.is_some());
        }
        let sight = Arc::new(sight);
        let former =
            Arc::make_mut(&mut self.leaders.sights).insert(lease.clone(), Arc::clone(&sight));
        self.leaders.changed = true;
        if sight.names_other(former.as_deref()) {
            self.tell(Event::LeaderChanged { lease, leader: sight.leader.clone() });
        }
    }

    /// To be called before leaderships are handed out: who gets one finds itself named.
    pub(super) fn publish_leaders(&mut self) {
        if std::mem::take(&mut self.leaders.changed) {
            self.shared.leaders.store(Arc::clone(&self.leaders.sights));
        }
    }
}
