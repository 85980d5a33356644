//! Who leads the leases that this node stands for or follows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use incumbent_core::store::{Key, Read};
use incumbent_core::{LeaseName, Request, RequestId, keys};

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
    /// The leases by the keys of their records.
    keys: HashMap<Key, LeaseName>,
    /// About which of them a request on its way asks.
    asked: BTreeMap<RequestId, Vec<LeaseName>>,
    /// The core may know more about these.
    answered: Vec<LeaseName>,
}

/// Requests about leases on their way at once. There are hardly ever two, and some are never heard of
/// again.
const MOST_ASKED: usize = 16;

impl Leaders {
    pub(super) fn follow(&mut self, lease: &LeaseName) {
        self.keys.insert(keys::lease(lease), lease.clone());
    }

    /// Notes about which leases a request asks.
    pub(super) fn asks(&mut self, request: &Request) {
        let asked = |read: &Read| match read {
            Read::Key { key, .. } => self.keys.get(key).cloned(),
            Read::Prefix(_) => None,
        };
        let asked: Vec<LeaseName> = request.exchange.reads.iter().filter_map(asked).collect();
        if !asked.is_empty() {
            self.asked.insert(request.id, asked);
        }
        if self.asked.len() > MOST_ASKED {
            self.asked.pop_first();
        }
    }

    /// A request was answered, or failed.
    pub(super) fn answered(&mut self, id: RequestId, well: bool) {
        let asked = self.asked.remove(&id).filter(|_| well);
        self.answered.extend(asked.into_iter().flatten());
    }

    pub(super) fn forget(&mut self, lease: &LeaseName) {
        self.keys.remove(&keys::lease(lease));
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
        for lease in std::mem::take(&mut self.leaders.answered) {
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
