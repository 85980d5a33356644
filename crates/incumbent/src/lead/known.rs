//! Who leads, from memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent_core::records::{MemberRecord, MemberState};
use incumbent_core::{Moment, Sighting};

use crate::cluster::Leader;
use crate::driver::clock;

/// Who leads a lease, as far as a node knows without asking; see
/// [`Node::known_leader`](crate::Node::known_leader).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownLeader {
    /// Who leads; nobody, if the lease was free.
    pub leader: Option<Leader>,
    /// How long ago the question was sent whose answer says so, or the leader beat last without saying that
    /// it has freed anything since; zero if this node leads itself.
    pub age: Duration,
}

/// What was last seen of a lease.
#[derive(Debug)]
pub(crate) struct LeaderSeen {
    pub(crate) leader: Option<Leader>,
    /// It is this node that leads, as far as the driver knows.
    own: bool,
    seen: AtomicU64,
}

impl LeaderSeen {
    pub(crate) fn new(sighting: Sighting<'_>, own_ttl: Duration) -> Self {
        let leader = sighting.leader.and_then(|(record, member)| {
            let state = member.map_or(MemberState::Alive, |it| it.state);
            let ttl = member.map_or(own_ttl, MemberRecord::ttl);
            Leader::new(record, state, ttl)
        });
        Self { leader, own: sighting.own, seen: AtomicU64::new(sighting.seen.as_nanos()) }
    }

    /// Nobody, from this moment on.
    pub(crate) fn nobody(now: Moment) -> Self {
        Self { leader: None, own: false, seen: AtomicU64::new(now.as_nanos()) }
    }

    /// Whether the sighting shows the same leader in the same state.
    pub(crate) fn is_same(&self, sighting: &Sighting<'_>) -> bool {
        match (&self.leader, sighting.leader) {
            (None, None) => true,
            (Some(leader), Some((record, member))) => {
                record.term == leader.term
                    && record.holder.as_ref().is_some_and(|it| it.member == leader.member)
                    && member.is_none_or(|member| member.state == leader.state)
            }
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    /// Whether the other names somebody else, or another term.
    pub(crate) fn names_other(&self, other: Option<&Self>) -> bool {
        let named = |sight: &Self| sight.leader.as_ref().map(|it| (it.member.clone(), it.term));
        named(self) != other.and_then(named)
    }

    /// It was seen once more.
    pub(crate) fn renew(&self, seen: Moment) {
        self.seen.store(seen.as_nanos(), Ordering::Relaxed);
    }

    /// What is known, if this node's own trust is asked first.
    pub(crate) fn known(&self, leads: bool) -> KnownLeader {
        let seen = Moment::from_nanos(self.seen.load(Ordering::Relaxed));
        let age = clock::now().since(seen);
        match (self.own, leads) {
            (true, true) => KnownLeader { leader: self.leader.clone(), age: Duration::ZERO },
            (true, false) => KnownLeader { leader: None, age },
            (false, _) => KnownLeader { leader: self.leader.clone(), age },
        }
    }
}
