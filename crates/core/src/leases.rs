//! The leases of a node, with the members that others hold them by: wanted, watched, taken, held,
//! freed. What is to be done about one is in `decide`, how it is read in `looks`, what replies change
//! in `replies`, and what holds where the store forgot in `losses`.

mod decide;
mod knowledge;
mod looks;
mod losses;
mod past;
mod replies;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::keys;
use crate::lease::{JUMP, Known, Lease, Memory, Stage};
use crate::member::{Ending, Membership};
use crate::mutant::Mutant;
use crate::names::{LeaseKind, LeaseName, MemberId};
use crate::node::{Config, ElectionEvent, LossCause, PreferredMembers, Sighting};
use crate::outbox::{Answered, Outbox, Purpose, first_write};
use crate::random::Random;
use crate::records::{LeaseRecord, MemberRecord};
use crate::stance::Stance;
use crate::store::{Lane, Read};
use crate::time::Moment;
use crate::watch::{Verdict, Watch};

pub use past::Past;

/// All leases that a node wants, watches or holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leases {
    /// In boxes, because a third of a map's room is empty.
    leases: BTreeMap<LeaseName, Box<Lease>>,
    /// What is remembered of leases that aren't wanted any more.
    memories: BTreeMap<LeaseName, Memory>,
    /// The highest term of any lease that this node has seen.
    highest_term: u64,
    /// Where the terms of leases begin that this node doesn't know, once the store has forgotten
    /// something, and until when somebody may still trust in one of those that are lost.
    first_term: u64,
    lost_until: Moment,
    /// Work that runs, or may still run: the member and the term under which it was started.
    running: BTreeMap<LeaseName, (MemberId, u64)>,
    watches: BTreeMap<MemberId, Watch>,
    timers: BTreeSet<(Moment, LeaseName)>,
    to_look: BTreeSet<LeaseName>,
    /// Leases that wait for a beat to prove them; some of these may wait no more. A beat must not look
    /// at all leases for them.
    proving: BTreeSet<LeaseName>,
    /// The term in which this node leads the cluster.
    leads: Option<u64>,
    /// Something was won since that was last asked.
    won: bool,
    /// Leases of duties of which something became.
    moved: VecDeque<LeaseName>,
    /// Of whose leader more may be known than was when this was last asked.
    sighted: BTreeSet<LeaseName>,
}

/// What leases have to know of their node, and use of it.
pub(crate) struct Owner<'a> {
    pub(crate) config: &'a Config,
    pub(crate) member: Option<&'a mut Membership>,
    /// Whom the last view prefers as leaders of the cluster.
    pub(crate) preferred: &'a PreferredMembers,
    pub(crate) wall_ms: u64,
    /// Whether the node is leaving.
    pub(crate) leaving: bool,
    pub(crate) random: &'a mut Random,
    pub(crate) outbox: &'a mut Outbox,
}

/// What a request about leases was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LeaseErrand {
    /// Leases with what their holders had said of those that they freed, as of before the read. Of those
    /// that are covered only the holders are read.
    Look {
        leases: Vec<(LeaseName, u64)>,
        covered: Vec<LeaseName>,
        holders: Vec<MemberId>,
    },
    Take(LeaseName, LeaseRecord),
    Free(LeaseName, u64, LeaseRecord),
    Touch(LeaseName, LeaseRecord),
    Close(MemberRecord),
    Confirm(LeaseName, u64),
}

impl From<LeaseErrand> for Purpose {
    fn from(errand: LeaseErrand) -> Self {
        Self::Lease(Box::new(errand))
    }
}

impl Owner<'_> {
    /// The member that leases hang from, once it is alive.
    pub(crate) fn own_id(&self) -> Option<&MemberId> {
        self.member.as_ref().filter(|member| member.is_alive()).map(|member| &member.id)
    }

    fn trusted(&self, now: Moment) -> bool {
        self.member.as_ref().is_some_and(|member| member.is_trusted(now))
    }

    /// Whether the record names this member.
    fn is_named_by(&self, lease: &Lease) -> bool {
        lease.holder().is_some() && lease.holder() == self.own_id()
    }
}

impl Leases {
    pub(crate) fn new() -> Self {
        Self {
            leases: BTreeMap::new(),
            memories: BTreeMap::new(),
            highest_term: 0,
            first_term: 1,
            lost_until: Moment::START,
            running: BTreeMap::new(),
            watches: BTreeMap::new(),
            timers: BTreeSet::new(),
            to_look: BTreeSet::new(),
            proving: BTreeSet::new(),
            leads: None,
            won: false,
            moved: VecDeque::new(),
            sighted: BTreeSet::new(),
        }
    }

    /// When [`Self::poll`] has something to do by itself.
    pub(crate) fn wake_at(&self) -> Moment {
        self.timers.first().map_or(Moment::NEVER, |(at, _)| *at)
    }

    pub(crate) fn poll(&mut self, now: Moment, owner: &mut Owner<'_>) {
        while let Some((at, name)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.arm(&name, Moment::NEVER);
            self.drive(now, &name, owner);
        }
        self.send_looks(now, owner);
    }

    /// Takes in the reply to a request. Those that were sent by a former incarnation concern no other,
    /// unless they only read or close.
    pub(crate) fn replied(
        &mut self,
        now: Moment,
        sent: Moment,
        errand: LeaseErrand,
        current: bool,
        answer: Answered<'_>,
        owner: &mut Owner<'_>,
    ) {
        match errand {
            LeaseErrand::Look { leases, covered, holders } => {
                self.looked(now, sent, &leases, &holders, answer, owner);
                for name in covered {
                    self.heard(now, &name, answer.is_ok(), owner);
                }
            }
            LeaseErrand::Close(record) => self.closed(now, record, first_write(answer), owner),
            LeaseErrand::Confirm(name, term) => {
                self.confirmed(&name, term, current, answer, owner);
            }
            LeaseErrand::Take(..) | LeaseErrand::Free(..) | LeaseErrand::Touch(..) if !current => {}
            LeaseErrand::Take(name, record) => {
                self.taken_or_not(now, sent, &name, record, answer, owner);
            }
            LeaseErrand::Free(name, term, record) => {
                self.freed(now, sent, (&name, term), record, answer, owner);
            }
            LeaseErrand::Touch(name, record) => self.touched(now, &name, record, answer, owner),
        }
    }

    pub(crate) fn campaign(
        &mut self,
        now: Moment,
        name: LeaseName,
        candidacy: Stance,
        owner: &mut Owner<'_>,
    ) {
        let memories = &mut self.memories;
        let lease = self.leases.entry(name.clone()).or_insert_with(|| {
            let memory = memories.remove(&name).unwrap_or_default();
            Box::new(Lease { memory, ..Lease::new(name.clone(), now) })
        });
        lease.want = Some(candidacy);
        if matches!(lease.stage, Stage::Seeking) {
            self.arm(&name, now);
        }
        if name.kind() == LeaseKind::Duty && owner.config.planted.is(Mutant::DutyWithoutLease) {
            self.elect(&name, 1, owner);
        }
    }

    /// Wants the lease no more, and frees it, perhaps for the sake of a successor, once its work has
    /// stopped.
    pub(crate) fn withdraw(
        &mut self,
        now: Moment,
        name: &LeaseName,
        why: LossCause,
        successor: Option<MemberId>,
        owner: &mut Owner<'_>,
    ) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.want = None;
            self.stop(now, name, why, successor, owner);
            self.arm(name, now);
        }
    }

    /// The work under a term has ended.
    pub(crate) fn stopped(
        &mut self,
        now: Moment,
        name: &LeaseName,
        term: u64,
        outbox: &mut Outbox,
    ) {
        if self.running.get(name).is_some_and(|(_, running)| *running == term) {
            self.running.remove(name);
        }
        if let Some(lease) = self.leases.get_mut(name) {
            match lease.stage {
                Stage::Held(held) if held == term => {
                    lease.stage = Stage::ToFree(term);
                    let (lease, why) = (name.clone(), LossCause::Finished);
                    outbox.say(ElectionEvent::Lost { lease, term, why, abrupt: false });
                }
                Stage::Stopping(stopping) if stopping == term => lease.stage = Stage::ToFree(term),
                _ => {}
            }
            self.arm(name, now);
        }
        self.note_moved(name);
    }

    /// Puts off contending for a lease.
    pub(crate) fn abstain(&mut self, name: &LeaseName, until: Moment) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.not_before = lease.not_before.max(until);
        }
    }

    /// Something may have changed: what is wanted and not held is read now, or again if a read that
    /// may have missed it is on its way.
    pub(crate) fn hint(&mut self, now: Moment, owner: &Owner<'_>) {
        let mut seeking = Vec::new();
        for lease in self.leases.values_mut().filter(|lease| lease.want.is_some()) {
            lease.hinted = !owner.config.planted.is(Mutant::HintLostWhileLooking);
            if lease.stage == Stage::Seeking {
                lease.look_at = now;
                seeking.push(lease.name.clone());
            }
        }
        for name in seeking {
            self.arm(&name, now);
        }
    }

    /// Asks the store whether a term is still held.
    pub(crate) fn confirm(
        &mut self,
        now: Moment,
        name: &LeaseName,
        term: u64,
        owner: &mut Owner<'_>,
    ) {
        let lease = name.clone();
        let Some(id) = owner.own_id() else {
            return owner.outbox.say(ElectionEvent::Confirmed { lease, term, held: Some(false) });
        };
        let reads = vec![
            Read::Key { key: keys::lease(name), unless: None },
            Read::Key { key: keys::member(id), unless: None },
        ];
        let purpose = Purpose::from(LeaseErrand::Confirm(lease, term));
        owner.outbox.ask(now, Lane::Watch, reads, purpose);
    }

    /// Gives up a lease of which a later term left its traces.
    pub(crate) fn outdated(
        &mut self,
        now: Moment,
        name: &LeaseName,
        term: u64,
        owner: &mut Owner<'_>,
    ) {
        if let Some(lease) = self.leases.get_mut(name).filter(|lease| lease.memory.term < term) {
            lease.memory.highest = term.max(lease.memory.highest);
            lease.memory.term = term;
            lease.memory.holder = None;
        }
        self.stop(now, name, LossCause::Superseded, None, owner);
    }

    /// Takes in the proof that nothing of this member runs any more.
    pub(crate) fn proven_dead(&mut self, now: Moment, member: &MemberId) {
        let awaits = |lease: &&Lease| lease.awaited().any(|awaited| awaited == member);
        let waiting = self.leases.values().map(Box::as_ref).filter(awaits);
        let waiting: Vec<LeaseName> = waiting.map(|lease| lease.name.clone()).collect();
        if waiting.is_empty() {
            return;
        }
        self.watches.entry(member.clone()).or_insert_with(Watch::new).proven_dead();
        for name in waiting {
            self.arm(&name, now);
        }
    }

    /// Ends trust and work at a lease: in order, if there is time.
    pub(crate) fn stop(
        &mut self,
        now: Moment,
        name: &LeaseName,
        why: LossCause,
        successor: Option<MemberId>,
        owner: &mut Owner<'_>,
    ) {
        let early = owner.config.planted.is(Mutant::FreedBeforeStopped);
        let Some(lease) = self.leases.get_mut(name) else { return };
        let Stage::Held(term) = lease.stage else { return };
        lease.successor = successor;
        // What the cluster's leader does is done in here, and stops in here.
        let leads = name.kind() == LeaseKind::Leader;
        let stopped = early || leads;
        lease.stage = if stopped { Stage::ToFree(term) } else { Stage::Stopping(term) };
        if leads {
            self.leads = None;
        }
        owner.outbox.say(ElectionEvent::Lost { lease: name.clone(), term, why, abrupt: false });
        self.note_moved(name);
        self.arm(name, now);
    }

    /// The member is over from which all leases hung.
    pub(crate) fn end(&mut self, now: Moment, why: Ending, owner: &mut Owner<'_>) {
        if why == Ending::Vanished {
            // What others took since the last loss may be lost with this one.
            if self.first_term > 1 {
                self.first_term += JUMP;
            }
            self.note_loss(now, owner);
        }
        self.leads = None;
        // What became of leases before concerns what the rider forgets now.
        self.moved.clear();
        for lease in self.leases.values_mut() {
            let name = lease.name.clone();
            match lease.stage {
                Stage::Held(term) => {
                    let why = LossCause::Ended(why);
                    owner.outbox.say(ElectionEvent::Lost { lease: name, term, why, abrupt: true });
                    lease.not_before = now + owner.config.timing.ttl / 4;
                }
                Stage::Stopping(term) => {
                    owner.outbox.say(ElectionEvent::Abort { lease: name, term });
                }
                Stage::Seeking
                | Stage::Taking
                | Stage::Proving(..)
                | Stage::ToFree(_)
                | Stage::Freeing(_) => {}
            }
            if lease.name.kind() == LeaseKind::Duty
                && !owner.config.planted.is(Mutant::RosterOutlivesMember)
            {
                // The roster was that of an incarnation that is over.
                lease.want = None;
            }
            lease.stage = Stage::Seeking;
            lease.released = 0;
            lease.doubts.clear();
            lease.look_at = now;
        }
        self.arm_all(now);
    }

    /// The node has left, and wants nothing any more.
    pub(crate) fn clear(&mut self) {
        self.leases.clear();
        self.timers.clear();
    }

    /// Notes when a lease wants to be looked after, once.
    fn arm(&mut self, name: &LeaseName, at: Moment) {
        let Some(lease) = self.leases.get_mut(name) else { return };
        if lease.armed != at {
            self.timers.remove(&(lease.armed, name.clone()));
            lease.armed = at;
            if at != Moment::NEVER {
                self.timers.insert((at, name.clone()));
            }
        }
    }

    pub(crate) fn arm_all(&mut self, at: Moment) {
        for name in self.names() {
            self.arm(&name, at);
        }
    }

    /// Looks after those that wait for a beat of this member.
    pub(crate) fn arm_proving(&mut self, now: Moment) {
        for name in std::mem::take(&mut self.proving) {
            let lease = self.leases.get(&name);
            if lease.is_some_and(|lease| matches!(lease.stage, Stage::Proving(..))) {
                self.arm(&name, now);
                self.proving.insert(name);
            }
        }
    }

    pub(crate) fn names(&self) -> Vec<LeaseName> {
        self.leases.keys().cloned().collect()
    }

    /// The lease of this name, if it is wanted, watched or held.
    pub(crate) fn named(&self, text: &str) -> Option<LeaseName> {
        self.leases.keys().find(|name| name.as_str() == text).cloned()
    }

    /// The term in which this node leads the cluster.
    pub(crate) fn leads(&self) -> Option<u64> {
        self.leads
    }

    /// Whether something was won; asked once.
    pub(crate) fn take_won(&mut self) -> bool {
        std::mem::take(&mut self.won)
    }

    /// The leases that were looked at since this was last asked.
    pub(crate) fn take_sighted(&mut self) -> BTreeSet<LeaseName> {
        std::mem::take(&mut self.sighted)
    }

    /// The next lease of a duty of which something became.
    pub(crate) fn next_moved(&mut self) -> Option<LeaseName> {
        self.moved.pop_front()
    }

    /// A lease is free by now that hung from this member, or may be. Hints tell those that wait where
    /// there are any, and the next beat tells the others.
    fn note_freed(&mut self, now: Moment, owner: &mut Owner<'_>) {
        let silent = owner.config.planted.is(Mutant::FreedUntold);
        if let Some(member) = owner.member.as_deref_mut().filter(|_| !silent) {
            member.tell_freed(now, !owner.config.push);
        }
    }

    fn note_moved(&mut self, name: &LeaseName) {
        if name.kind() == LeaseKind::Duty {
            self.moved.push_back(name.clone());
        }
    }

    /// Whether work runs, or may still run, that was started under this member.
    pub(crate) fn works_for(&self, id: &MemberId) -> bool {
        self.running.values().any(|(member, _)| member == id)
    }
}

#[cfg(test)]
mod tests;
