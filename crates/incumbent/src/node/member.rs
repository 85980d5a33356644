use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use incumbent_core::MemberId;
use incumbent_core::records::{HostIdentity, MemberRecord, MemberState, Profile, ViewEntry};

use crate::cluster::json::is_overdue;

/// A member of the cluster, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Fresh at each join, so that it never comes back.
    pub id: MemberId,
    /// The name that people know its node by. Names may collide, ids never do.
    pub node: String,
    /// Where in its life it is.
    pub state: MemberState,
    /// Where it can be reached.
    pub address: Option<String>,
    /// Whatever operators sort nodes by.
    pub labels: BTreeMap<String, String>,
    /// When it joined by its own wall clock, in milliseconds since 1970: for display alone.
    pub joined_ms: u64,
    /// A small number that stays with it, given by the cluster's leader.
    pub number: Option<u32>,
    /// How long others wait for it. Known only from the store.
    pub ttl: Option<Duration>,
    /// How long ago it beat by the store's clock, where it has one: for display alone.
    pub age: Option<Duration>,
    /// The process behind it. Known only from the store.
    pub host: Option<HostIdentity>,
    /// The families of duties that it serves, each with the versions that it can run, if it names
    /// any. Known only from the store.
    pub families: BTreeMap<String, BTreeSet<String>>,
    /// The sum of weights that it may carry; without it any. Known only from the store.
    pub capacity: Option<u64>,
    /// How many duties it may run; without it any number. Known only from the store.
    pub max_duties: Option<u32>,
}

impl Member {
    /// Whether it beats, as far as is known.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.state == MemberState::Alive
    }

    /// Whether it was not heard of for its ttl, by the store's clock: it is probably gone, and nobody has
    /// noticed. For display alone.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        is_overdue(self.state, self.age, self.ttl)
    }

    pub(crate) fn from_view(entry: ViewEntry) -> Self {
        Self {
            id: entry.id,
            node: entry.node,
            state: entry.state,
            address: entry.address,
            labels: entry.labels,
            joined_ms: entry.joined_ms,
            number: Some(entry.number),
            ttl: None,
            age: None,
            host: None,
            families: BTreeMap::new(),
            capacity: None,
            max_duties: None,
        }
    }

    pub(crate) fn from_records(
        record: MemberRecord,
        age: Option<Duration>,
        profile: Option<Profile>,
    ) -> Self {
        let ttl = Some(record.ttl());
        // A member without a profile has only just joined, or a clean-up is under way.
        let profile = profile.unwrap_or_else(|| Profile::named(""));
        Self {
            id: record.id,
            node: profile.node,
            state: record.state,
            address: profile.address,
            labels: profile.labels,
            joined_ms: profile.joined_ms,
            number: None,
            ttl,
            age,
            host: profile.host,
            families: profile.families.into_iter().map(|(name, it)| (name, it.versions)).collect(),
            capacity: profile.capacity,
            max_duties: profile.max_duties,
        }
    }
}
