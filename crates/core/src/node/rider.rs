//! Where whoever rides along with a node touches it: the placement of duties, which is built on
//! members and leases and of which nothing here knows.
//!
//! There are four places. A read of its own rides on each beat, and its requests go out and come
//! back with those of the node. It sees what the leader's list shows. It campaigns, withdraws and
//! asks what is held, as any driver does. And it has a say in what the member tells of itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    ElectionEvent, Elector, Lane, LeaseName, MemberId, Moment, Purpose, Read, RequestId, Write,
};
use crate::leader::Leading;
use crate::records::{FamilyProfile, Unreadable};
use crate::store::{ErrorKind, Found, Reply};

/// What is kept for the rider, and what waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Rider {
    /// What is read with each beat of this incarnation.
    pub(super) along: Option<Read>,
    /// What the profile says of families, and whether it has to wait for the lists that it names.
    pub(super) families: BTreeMap<String, FamilyProfile>,
    pub(super) unlisted: bool,
    /// How many incarnations have ended.
    endings: u64,
    /// What came back of errands, and what was found along with beats.
    pub(super) brought: VecDeque<Brought>,
    pub(super) found: VecDeque<Found>,
}

/// The reply to an errand, or the error that came instead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Brought {
    /// What [`Elector::errand`] gave.
    pub id: RequestId,
    /// The incarnation by which it was sent.
    pub member: Option<MemberId>,
    /// What the store said.
    pub answer: Result<Reply, ErrorKind>,
}

impl Rider {
    pub(super) fn end(&mut self) {
        self.along = None;
        self.endings += 1;
    }
}

impl Elector {
    /// Sends something for the rider; [`Self::brought`] has the reply. It has its deadline, and
    /// what comes later counts as unknown, like everything that a node sends.
    pub fn errand(
        &mut self,
        now: Moment,
        lane: Lane,
        writes: Vec<Write>,
        reads: Vec<Read>,
    ) -> RequestId {
        self.outbox.send(now, lane, writes, reads, Purpose::Errand)
    }

    /// The next errand that came back.
    pub fn brought(&mut self) -> Option<Brought> {
        self.rider.brought.pop_front()
    }

    /// Sets what is read with each beat, until this incarnation ends.
    pub fn ride_along(&mut self, read: Option<Read>) {
        self.rider.along = read;
    }

    /// What is read with each beat.
    #[must_use]
    pub fn along(&self) -> Option<&Read> {
        self.rider.along.as_ref()
    }

    /// The next thing that a read which rode along has found.
    pub fn found(&mut self) -> Option<Found> {
        self.rider.found.pop_front()
    }

    /// The next lease of a duty of which something became.
    pub fn moved(&mut self) -> Option<LeaseName> {
        self.leases.next_moved()
    }

    /// How many incarnations of this node have ended.
    #[must_use]
    pub fn endings(&self) -> u64 {
        self.rider.endings
    }

    /// The incarnation that is, or is to be, a member.
    #[must_use]
    pub fn incarnation(&self) -> Option<&MemberId> {
        self.member.as_ref().map(|member| &member.id)
    }

    /// Whether this node is a member and trusts in that.
    #[must_use]
    pub fn is_trusted(&self, now: Moment) -> bool {
        self.trusted(now)
    }

    /// Whether it was asked to leave.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// What it was started with.
    #[must_use]
    pub fn config(&self) -> &super::Config {
        &self.config
    }

    /// What the wall clock showed last, in milliseconds.
    #[must_use]
    pub fn wall_ms(&self) -> u64 {
        self.wall_ms
    }

    /// Changes what the profile says of families.
    pub fn tell_families(&mut self, families: BTreeMap<String, FamilyProfile>) {
        self.rider.families = families;
        self.introduction.changed();
    }

    /// Whether the lists are in the store that the profile names; it isn't written before.
    pub fn tell_listed(&mut self, listed: bool) {
        self.rider.unlisted = !listed;
    }

    /// How often the member's report has changed, which the next beat says.
    pub fn tell_report(&mut self, revision: u64) {
        if let Some(member) = &mut self.member {
            member.tell_report(revision);
        }
    }

    /// Says that a record of the rider's can't be read.
    pub fn tell_unreadable(&mut self, unreadable: Unreadable) {
        self.outbox.say(ElectionEvent::Unreadable(unreadable));
    }

    /// What the leader of the cluster knows, if that is this node.
    #[must_use]
    pub fn leading(&self) -> Option<&Leading> {
        self.leader.as_ref()
    }

    /// Whose lists of duties are gone: the view says so, and they write them again.
    pub fn tell_missing(&mut self, missing: BTreeSet<MemberId>) {
        if let Some(leader) = &mut self.leader {
            leader.missing = missing;
        }
    }

    /// The leases of duties that are neither held nor free of this node: their work is ending, or
    /// they are being freed.
    pub fn ending(&self) -> impl Iterator<Item = &LeaseName> {
        self.leases.ending()
    }
}
