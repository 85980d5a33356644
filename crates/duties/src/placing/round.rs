//! One round of the leader's placing: what can't wait, and when a plan is to be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::reading::AGAIN;
use super::{Placement, Placing, PlacingStage, PlacingStep, Subject, Underway, Writes};
use crate::duty::DutyId;
use incumbent_core::Moment;
use incumbent_core::keys;
use incumbent_core::leader::{Leading, WantedWrite};
use incumbent_core::mutant::{Mutant, Planted};
use incumbent_core::names::MemberId;
use incumbent_core::records::{Content, MemberRecord, MemberState, Overdue, Profile};
use incumbent_core::settings::Timing;
use incumbent_core::store::Expect;

/// The least time between two rounds without news.
const SOON: Duration = Duration::from_millis(50);

/// What a round is given beside records.
pub(crate) struct Round<'a> {
    pub(crate) now: Moment,
    pub(crate) wall_ms: u64,
    pub(crate) leader: &'a Leading,
    pub(crate) own: &'a MemberId,
    pub(crate) placement: &'a Placement,
    pub(crate) timing: &'a Timing,
    pub(crate) max_value: usize,
    pub(crate) planted: Planted,
}

impl Placing {
    pub(crate) fn step(&mut self, round: &Round<'_>) -> Option<PlacingStep> {
        match self.stage {
            PlacingStage::Asleep => {
                let serves = |profile: &Profile| !profile.families.is_empty();
                let late = round.now >= self.next || self.next == Moment::NEVER;
                if late && round.leader.living().any(|(_, _, profile)| serves(profile)) {
                    self.stage = PlacingStage::Idle;
                    return self.review(round);
                }
                None
            }
            PlacingStage::Reading | PlacingStage::Superseded(_) => None,
            PlacingStage::Idle if self.is_writing() => None,
            PlacingStage::Idle => self.review(round),
        }
    }

    fn review(&mut self, round: &Round<'_>) -> Option<PlacingStep> {
        let (now, leader) = (round.now, round.leader);
        let due = now >= self.next;
        if self.generation == leader.generation() && !self.dirty && !due {
            return None;
        }
        if let Some(reads) = self.reads(now, leader, round.planted) {
            return Some(reads);
        }
        if self.is_in_doubt(leader) {
            self.next = now + AGAIN / 2;
            return None;
        }
        self.generation = leader.generation();
        self.dirty = false;
        let writes = self.tend(round);
        if let Some(underway) = &mut self.underway {
            underway.overtaken = true;
            self.next = self.next_eviction(round).unwrap_or(Moment::NEVER);
        } else if now < self.not_before {
            self.next = self.next_eviction(round).unwrap_or(Moment::NEVER).min(self.not_before);
        } else if round.planted.is(Mutant::RecoveryWaits) && !self.may_rebalance(round) {
            self.next = self.next_round(round, false);
        } else {
            self.pass_versions(round);
            self.underway = Some(Underway::to_begin(self.may_rebalance(round)));
            self.next = self.next_eviction(round).unwrap_or(Moment::NEVER);
        }
        (!writes.is_empty()).then_some(PlacingStep::Write(writes))
    }

    /// Whether something is not known without which a plan would be made from nothing.
    fn is_in_doubt(&self, leader: &Leading) -> bool {
        let unknown = |(id, record, profile): (&MemberId, &MemberRecord, &Arc<Profile>)| {
            self.is_unknown(id, record, profile)
        };
        self.moves_doubtful
            || self.rollout_doubtful
            || !self.moves_read
            || !self.doubtful.is_empty()
            || leader.living().any(unknown)
    }

    /// What is done whether or not a plan is on its way.
    fn tend(&mut self, round: &Round<'_>) -> Writes {
        let members: BTreeMap<&MemberId, &Profile> =
            round.leader.living().map(|(id, _, profile)| (id, profile.as_ref())).collect();
        self.follow_members(round, &members);
        self.follow_lists(round, &members);
        let mut writes = self.evict(round, &members);
        writes.extend(self.forget_lists(round));
        self.give_up_waiting(round);
        self.give_up_preparing(round);
        self.expire_avoided(round.now);
        writes
    }

    /// What belonged to members that are gone is forgotten.
    fn follow_members(&mut self, round: &Round<'_>, members: &BTreeMap<&MemberId, &Profile>) {
        if !self.members.iter().eq(members.keys().copied()) {
            self.changed = round.now;
            self.members = members.keys().copied().cloned().collect();
        }
        // Some may be alive although their profile was not read yet.
        let alive = |id: &MemberId| round.leader.is_alive(id);
        self.note_setbacks(round);
        self.note_lost(round);
        self.rosters.retain(|id, _| alive(id));
        self.reports.retain(|id, _| alive(id));
        self.acquainted.retain(alive);
        self.pending.retain(|id, _| alive(id));
        self.draining.retain(|id, _| alive(id));
        self.failed.retain(|_, (id, _)| alive(id));
        self.doubtful.retain(alive);
        self.unsettled.retain(alive);
        if self.avoided.values().flat_map(BTreeMap::keys).any(|id| !alive(id)) {
            for avoided in Arc::make_mut(&mut self.avoided).values_mut() {
                avoided.retain(|id, _| alive(id));
            }
        }
    }

    /// Which lists living members name. What they say is put together by the plan.
    fn follow_lists(&mut self, round: &Round<'_>, members: &BTreeMap<&MemberId, &Profile>) {
        let lists = members.values().flat_map(|profile| profile.families.values());
        let named: BTreeSet<&String> = lists.flat_map(|family| &family.catalogs).collect();
        for hash in &named {
            if let Some(at) = self.named.get_mut(*hash) {
                *at = round.now;
            } else {
                self.named.insert(String::clone(hash), round.now);
            }
        }
        self.absent.retain(|hash| named.contains(hash));
        let there = named.iter().filter(|hash| self.catalogs.contains_key(**hash));
        let there: BTreeSet<String> = there.map(|hash| String::clone(hash)).collect();
        self.lists_missing = there.len() < named.len();
        if there != self.lists {
            self.changed = round.now;
            self.lists = there;
        }
    }

    /// Lists that no living member names are deleted after a while. Should one be named again in
    /// that very moment, its member is told by the view and writes it again.
    fn forget_lists(&mut self, round: &Round<'_>) -> Writes {
        for profile in round.leader.profiles() {
            for hash in profile.families.values().flat_map(|family| &family.catalogs) {
                self.named.entry(hash.clone()).or_insert(round.now);
            }
        }
        let over = |at: &Moment| round.now.since(*at) >= round.timing.visible;
        let gone: Vec<String> =
            self.named.iter().filter(|(_, at)| over(at)).map(|(hash, _)| hash.clone()).collect();
        let mut writes = Vec::new();
        for hash in gone {
            // Until that is known to have happened it isn't forgotten.
            self.named.insert(hash.clone(), round.now);
            let delete = WantedWrite::Delete(keys::catalog(&hash));
            writes.push((Subject::List(hash), delete));
        }
        writes
    }

    /// Members whose family asks for it are evicted when a duty doesn't stop in its time.
    fn evict(&mut self, round: &Round<'_>, members: &BTreeMap<&MemberId, &Profile>) -> Writes {
        let mut late = BTreeSet::new();
        for (id, draining) in &self.draining {
            let families = members.get(id).map(|profile| &profile.families);
            for (duty, since) in draining {
                if let Some(family) = families.and_then(|families| families.get(duty.family()))
                    && family.overdue == Overdue::Evict
                    && round.now.since(*since) >= Duration::from_millis(family.grace_ms)
                {
                    late.insert(id.clone());
                }
            }
        }
        let evict = |id: &MemberId| {
            let (record, version) = round.leader.member(id)?;
            let closed = record.closed(MemberState::Evicted).bytes();
            let put = WantedWrite::Put(keys::member(id), Expect::Version(version.clone()), closed);
            Some((Subject::Aside, put))
        };
        late.iter().filter_map(evict).collect()
    }

    /// A duty that was not started in its time is placed elsewhere.
    fn give_up_waiting(&mut self, round: &Round<'_>) {
        let now = round.now;
        let mut late = Vec::new();
        let mut held_by: BTreeMap<&DutyId, Vec<&MemberId>> = BTreeMap::new();
        for (member, draining) in &self.draining {
            for duty in draining.keys() {
                held_by.entry(duty).or_default().push(member);
            }
        }
        for (id, pending) in &mut self.pending {
            for (duty, (since, _)) in pending {
                let holders = held_by.get(duty);
                if holders.is_some_and(|holders| holders.iter().any(|member| *member != id)) {
                    // Another has not let go of it yet: the time to start begins after that.
                    *since = now;
                }
                if now >= *since + patience(round, id, duty) {
                    late.push((duty.clone(), id.clone()));
                }
            }
        }
        for (duty, id) in late {
            if let Some(pending) = self.pending.get_mut(&id) {
                pending.remove(&duty);
            }
            if !round.planted.is(Mutant::AcknowledgeTimeoutIgnored) {
                self.avoid(&duty, &id, now);
                self.failed.insert(duty, (id, "it did not start in time".to_owned()));
            }
        }
    }

    /// What isn't prepared for in its time is prepared for elsewhere, if it can be.
    fn give_up_preparing(&mut self, round: &Round<'_>) {
        let mut setbacks = std::mem::take(&mut self.setbacks);
        let patience = |id: &MemberId, duty: &DutyId| self.preparing_for(round, id, duty);
        let late = setbacks.overdue(round.now, patience);
        self.setbacks = setbacks;
        for (id, duty) in late {
            self.avoid(&duty, &id, round.now);
        }
    }

    /// How long to wait for word that a member is prepared for a duty, unless there is some.
    fn preparing_for(&self, round: &Round<'_>, id: &MemberId, duty: &DutyId) -> Option<Duration> {
        let said = self.reports.get(id).is_some_and(|report| {
            let all = report.prepared.contains(duty) || report.unprepared.contains_key(duty);
            all || report.more > 0
        });
        (!said).then(|| patience(round, id, duty))
    }

    fn expire_avoided(&mut self, now: Moment) {
        let lasts = |avoided: &BTreeMap<MemberId, Moment>| {
            !avoided.is_empty() && avoided.values().all(|until| now < *until)
        };
        if self.avoided.values().all(lasts) {
            return;
        }
        let all = Arc::make_mut(&mut self.avoided);
        for avoided in all.values_mut() {
            avoided.retain(|_, until| now < *until);
        }
        all.retain(|_, avoided| !avoided.is_empty());
    }

    fn may_rebalance(&self, round: &Round<'_>) -> bool {
        let quiet = round.placement.quiet.unwrap_or(round.timing.ttl);
        // With a list missing, a node seems to carry less than it does.
        !self.lists_missing
            && round.now >= self.changed + quiet
            && round.now >= self.rebalanced + round.timing.beat
    }

    /// When somebody is to be evicted.
    fn next_eviction(&self, round: &Round<'_>) -> Option<Moment> {
        let ends = |id: &MemberId, duty: &DutyId, since: &Moment| {
            let family = round.leader.profile(id)?.families.get(duty.family())?;
            let evicts = family.overdue == Overdue::Evict;
            evicts.then(|| *since + Duration::from_millis(family.grace_ms))
        };
        let all = self.draining.iter().flat_map(|(id, draining)| {
            draining.iter().filter_map(move |(duty, since)| ends(id, duty, since))
        });
        all.min().map(|at| at.max(round.now + SOON))
    }

    /// When something is due even without news.
    pub(super) fn next_round(&self, round: &Round<'_>, balanced: bool) -> Moment {
        let now = round.now;
        if round.planted.is(Mutant::RewritesSteadyRosters) {
            return now + round.timing.beat;
        }
        let pending = self.pending.iter().flat_map(|(id, pending)| {
            let overdue = move |(duty, (since, _)): (&DutyId, &(Moment, u64))| {
                *since + patience(round, id, duty)
            };
            pending.iter().map(overdue)
        });
        let avoided = self.avoided.values().flat_map(BTreeMap::values).copied();
        let quiet = round.placement.quiet.unwrap_or(round.timing.ttl);
        let rebalance = (self.changed + quiet).max(self.rebalanced + round.timing.beat);
        let behind = round.leader.living().any(|(id, record, _)| self.is_behind(id, record));
        let again = (behind || self.lists_missing).then_some(now + AGAIN);
        let unnamed = self.named.values().filter(|at| **at < now);
        let unnamed = unnamed.map(|at| *at + round.timing.visible).min();
        let evict = self.next_eviction(round);
        let prepared = self.setbacks.next_overdue(|id, duty| self.preparing_for(round, id, duty));
        let well = self.well.values().map(|(since, well_for)| *since + *well_for).min();
        [
            well,
            prepared,
            unnamed,
            pending.min(),
            evict,
            avoided.min(),
            again,
            (!balanced).then_some(rebalance),
        ]
        .into_iter()
        .flatten()
        .min()
        .map_or(Moment::NEVER, |at| at.max(now + SOON))
    }
}

/// How long to wait for word that a duty has started.
fn patience(round: &Round<'_>, id: &MemberId, duty: &DutyId) -> Duration {
    let family = round.leader.profile(id).and_then(|profile| profile.families.get(duty.family()));
    let ms = family.map_or(30_000, |family| family.acknowledge_ms);
    // A report comes once a beat, the next beat tells of it, and the leader lists once a beat.
    Duration::from_millis(ms) + round.timing.beat * 4
}
