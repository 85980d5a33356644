//! What a driver publishes and everyone may read without a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, ArcSwapOption};
use incumbent_core::{LeaseName, MemberId};

use crate::driver::clock;
use crate::lead::hold::Hold;
use crate::lead::known::LeaderSeen;
use crate::lead::tenure::Tenure;
use crate::node::health::Pulse;
use crate::node::member::Member;
use crate::node::metrics::Meters;

/// The terms that are held, by their leases.
pub(crate) type HeldTerms = HashMap<LeaseName, Held>;
/// What was last seen of leases.
pub(crate) type Sights = HashMap<LeaseName, Arc<LeaderSeen>>;

#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) held: ArcSwap<HeldTerms>,
    pub(crate) leaders: ArcSwap<Sights>,
    pub(crate) members: ArcSwap<Vec<Member>>,
    pub(crate) member: ArcSwapOption<MemberId>,
    pub(crate) pulse: Pulse,
    pub(crate) meters: Meters,
    leads_cluster: AtomicBool,
}

/// A term that is held, as far as the driver knows.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) tenure: Arc<Tenure>,
    /// Gone once the work under the term has ended.
    pub(crate) hold: Weak<Hold>,
}

impl Shared {
    pub(crate) fn leads_cluster(&self) -> bool {
        self.leads_cluster.load(Ordering::Acquire)
    }

    pub(crate) fn set_leads_cluster(&self, leads: bool) {
        self.leads_cluster.store(leads, Ordering::Release);
        if !leads {
            self.meters.placements.end(clock::now());
        }
    }
}
