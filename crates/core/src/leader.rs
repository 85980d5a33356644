//! What the leader of the cluster does: it lists the members, closes those that expired,
//! deletes what is long closed and publishes the view.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::keys;
use crate::mutant::{Mutant, Planted};
use crate::names::MemberId;
use crate::records::{
    Board, Content, FORMAT, Intent, IntentState, MemberRecord, MemberState, Profile, View,
    ViewEntry, Wish,
};
use crate::settings::Timing;
use crate::store::{ErrorKind, Expect, Found, Key, Outcome, Read, Record, Reply, Version};
use crate::time::Moment;

/// The leader's knowledge. It is rebuilt from records by every new leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leader {
    term: u64,
    stage: Stage,
    /// When to list again.
    next: Moment,
    /// When it was listed last.
    last: Moment,
    members: BTreeMap<MemberId, Seen>,
    profiles: BTreeMap<MemberId, Profile>,
    finished: BTreeMap<Key, Moment>,
    /// What operators ask for that is in force until they take it back.
    wishes: BTreeMap<Key, (Version, Intent)>,
    /// The last listing showed that a profile is new or has changed.
    profile_moved: bool,
    /// Counts what changed of members, profiles and wishes.
    generation: u64,
    /// Members whose lists of duties are gone.
    pub(crate) missing: BTreeSet<MemberId>,
    view: Stored<View>,
    board: Stored<Board>,
    /// The board was found older than the view in the store.
    board_behind: bool,
    /// What the write on its way will have published.
    publishing: Option<Published>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// List at [`Leader::next`].
    Idle,
    Listing,
    /// The list is in: decide what to write.
    Listed,
    Writing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    record: MemberRecord,
    version: Version,
    /// When the first reply arrived that showed this version.
    received: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stored<T> {
    pub(crate) content: Option<T>,
    pub(crate) version: Option<Version>,
}

impl<T> Stored<T> {
    pub(crate) const EMPTY: Self = Self { content: None, version: None };

    pub(crate) fn expect(&self) -> Expect {
        self.version.clone().map_or(Expect::Absent, Expect::Version)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Published {
    View(View),
    Board(Board),
}

/// A write that the leader wants sent; the node stamps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Put(Key, Expect, Vec<u8>),
    Delete(Key),
}

/// What the leader wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    List(Vec<Read>),
    Write(Vec<Wanted>),
}

impl Leader {
    pub(crate) fn new(term: u64) -> Self {
        Self {
            term,
            stage: Stage::Idle,
            next: Moment::START,
            last: Moment::START,
            members: BTreeMap::new(),
            profiles: BTreeMap::new(),
            finished: BTreeMap::new(),
            wishes: BTreeMap::new(),
            profile_moved: false,
            generation: 0,
            missing: BTreeSet::new(),
            view: Stored::EMPTY,
            board: Stored::EMPTY,
            board_behind: true,
            publishing: None,
        }
    }

    /// Grows when members, profiles or wishes changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The members that are alive and have said who they are.
    pub(crate) fn living(&self) -> impl Iterator<Item = (&MemberId, &MemberRecord, &Profile)> {
        self.members.iter().filter(|(_, seen)| seen.record.state == MemberState::Alive).filter_map(
            |(id, seen)| self.profiles.get(id).map(|profile| (id, &seen.record, profile)),
        )
    }

    pub(crate) fn is_alive(&self, id: &MemberId) -> bool {
        self.members.get(id).is_some_and(|seen| seen.record.state == MemberState::Alive)
    }

    pub(crate) fn profile(&self, id: &MemberId) -> Option<&Profile> {
        self.profiles.get(id)
    }

    pub(crate) fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values()
    }

    pub(crate) fn member(&self, id: &MemberId) -> Option<(&MemberRecord, &Version)> {
        self.members.get(id).map(|seen| (&seen.record, &seen.version))
    }

    pub(crate) fn wishes(&self) -> impl Iterator<Item = (&Key, &Version, &Intent)> {
        self.wishes.iter().map(|(key, (version, intent))| (key, version, intent))
    }

    pub(crate) fn wake_at(&self) -> Moment {
        match self.stage {
            Stage::Idle => self.next,
            Stage::Listed => Moment::START,
            Stage::Listing | Stage::Writing => Moment::NEVER,
        }
    }

    /// Something may have changed: list soon, but not at every one of many hints.
    pub(crate) fn hint(&mut self, now: Moment) {
        self.next = self.next.min(now.max(self.last + Duration::from_millis(200)));
    }

    pub(crate) fn step(&mut self, now: Moment, timing: &Timing, planted: Planted) -> Option<Step> {
        match self.stage {
            Stage::Idle if now >= self.next => {
                self.stage = Stage::Listing;
                self.last = now;
                Some(Step::List(self.reads()))
            }
            Stage::Listed => {
                let writes = self.review(now, timing, planted);
                self.next = self.next_listing(now, timing);
                if std::mem::take(&mut self.profile_moved) && self.stale_profiles().next().is_some()
                {
                    self.next = now + Duration::from_millis(20);
                }
                if writes.is_empty() {
                    self.stage = Stage::Idle;
                    return None;
                }
                self.stage = Stage::Writing;
                Some(Step::Write(writes))
            }
            Stage::Idle | Stage::Listing | Stage::Writing => None,
        }
    }

    fn reads(&self) -> Vec<Read> {
        let key = |key, version: &Option<Version>| Read::Key { key, unless: version.clone() };
        // Intents are few, and deleted a while after they were obeyed.
        let mut reads = vec![
            Read::Prefix(keys::intents()),
            Read::Prefix(keys::members()),
            key(keys::view(), &self.view.version),
            key(keys::board(), &self.board.version),
        ];
        // Profiles come after their member records, and are read only while some are missing or
        // a beat said that one has changed.
        let stale: Vec<&MemberId> = self.stale_profiles().collect();
        if self.members.is_empty() || stale.len() > 16 {
            reads.push(Read::Prefix(keys::profiles()));
        } else {
            reads.extend(stale.iter().map(|id| key(keys::profile(id), &None)));
        }
        reads
    }

    fn stale_profiles(&self) -> impl Iterator<Item = &MemberId> {
        let stale = |(id, seen): &(&MemberId, &Seen)| {
            let known = self.profiles.get(*id).map(|profile| profile.revision);
            seen.record.state == MemberState::Alive
                && known.is_none_or(|revision| revision < seen.record.profile)
        };
        self.members.iter().filter(stale).map(|(id, _)| id)
    }

    /// Listed at every beat, and at the moment when a member that stands still expires.
    fn next_listing(&self, now: Moment, timing: &Timing) -> Moment {
        let expires = |seen: &Seen| seen.received + seen.record.ttl();
        let alive = self.members.values().filter(|seen| seen.record.state == MemberState::Alive);
        let soonest = alive.map(expires).min().unwrap_or(Moment::NEVER);
        (now + timing.beat).min(soonest).max(now + Duration::from_millis(20))
    }

    /// Takes in a listing.
    pub(crate) fn listed(&mut self, now: Moment, answer: Result<&Reply, ErrorKind>) {
        if self.stage != Stage::Listing {
            return;
        }
        let Ok(reply) = answer else {
            self.stage = Stage::Idle;
            self.next = now + Duration::from_millis(500);
            return;
        };
        let mut reads = reply.reads.iter();
        if let Some(Found::Records(records)) = reads.next() {
            self.see_intents(now, records);
        }
        if let Some(Found::Records(records)) = reads.next() {
            self.see_members(now, records);
        }
        see(&mut self.view, reads.next());
        see(&mut self.board, reads.next());
        for found in reads {
            match found {
                Found::Records(records) => self.see_profiles(records),
                Found::Record(record) => self.see_profiles(std::slice::from_ref(record)),
                Found::Absent | Found::Unchanged => {}
            }
        }
        self.stage = Stage::Listed;
    }

    fn see_members(&mut self, now: Moment, records: &[Record]) {
        let mut there = BTreeSet::new();
        for stored in records {
            // An unreadable record stays as it is: it is neither closed nor deleted.
            let Ok(record) = MemberRecord::read(stored) else { continue };
            there.insert(record.id.clone());
            let known = self.members.get(&record.id);
            let news = |seen: &Seen| {
                seen.record.state != record.state || seen.record.report != record.report
            };
            if known.is_none_or(news) {
                self.generation += 1;
            }
            self.profile_moved |= known.is_none_or(|seen| seen.record.profile < record.profile);
            if known.is_none_or(|seen| seen.version != stored.version) {
                let version = stored.version.clone();
                self.members.insert(record.id.clone(), Seen { record, version, received: now });
            }
        }
        let before = self.members.len();
        self.members.retain(|id, _| there.contains(id));
        self.generation += u64::from(self.members.len() != before);
        self.profiles.retain(|id, _| there.contains(id));
    }

    fn see_profiles(&mut self, records: &[Record]) {
        for id in self.members.keys() {
            let key = keys::profile(id);
            if let Ok(at) = records.binary_search_by(|stored| stored.key.cmp(&key))
                && let Some(profile) = records.get(at).and_then(|found| Profile::read(found).ok())
                && self.profiles.get(id) != Some(&profile)
            {
                self.profiles.insert(id.clone(), profile);
                self.generation += 1;
            }
        }
    }

    fn see_intents(&mut self, now: Moment, records: &[Record]) {
        self.finished.retain(|key, _| records.iter().any(|stored| stored.key == *key));
        let mut wishes = BTreeMap::new();
        for stored in records {
            let Ok(intent) = Intent::read(stored) else { continue };
            if intent.state != IntentState::Open {
                self.finished.entry(stored.key.clone()).or_insert(now);
            } else if !matches!(intent.wish, Wish::Resign { .. }) {
                wishes.insert(stored.key.clone(), (stored.version.clone(), intent));
            }
        }
        if wishes != self.wishes {
            self.wishes = wishes;
            self.generation += 1;
        }
    }

    /// Decides what to write: closings and deletions, and the view if it changed.
    fn review(&mut self, now: Moment, timing: &Timing, planted: Planted) -> Vec<Wanted> {
        let mut writes = Vec::new();
        for (id, seen) in &self.members {
            let ttl = seen.record.ttl();
            let quiet = now.since(seen.received);
            match seen.record.state {
                MemberState::Alive if planted.is(Mutant::AliveDeleted) && quiet > ttl / 3 => {
                    writes.push(Wanted::Delete(keys::member(id)));
                }
                MemberState::Alive if quiet >= ttl => {
                    let closed = seen.record.closed(MemberState::Expired);
                    let expect = Expect::Version(seen.version.clone());
                    writes.push(Wanted::Put(keys::member(id), expect, closed.bytes()));
                }
                MemberState::Alive => {}
                MemberState::Left | MemberState::Expired if quiet >= timing.visible => {
                    delete(&mut writes, id);
                }
                // Deleted only after being watched for its ttl, or a watcher that comes later
                // would conclude too early.
                MemberState::Evicted
                    if quiet >= timing.visible.max(ttl)
                        || planted.is(Mutant::EvictedDeletedEarly) =>
                {
                    delete(&mut writes, id);
                }
                MemberState::Left | MemberState::Expired | MemberState::Evicted => {}
            }
        }
        let over = |since: &Moment| now.since(*since) >= timing.visible;
        writes.extend(
            self.finished
                .iter()
                .filter(|(_, at)| over(at))
                .map(|(key, _)| Wanted::Delete(key.clone())),
        );
        self.finished.retain(|_, at| !over(at));
        writes.extend(self.publish(planted));
        writes
    }

    /// The view if it changed, then the board that points to it.
    fn publish(&mut self, planted: Planted) -> Option<Wanted> {
        let view = self.current_view();
        let stored = self.view.content.as_ref();
        if stored.is_some_and(|stored| stored.term > self.term) {
            // A later leader has been here: nothing of ours is wanted.
            return None;
        }
        let steady = stored.is_some_and(|stored| stored.members == view.members);
        if !steady || planted.is(Mutant::RewritesSteadyView) {
            let put = Wanted::Put(keys::view(), self.view.expect(), view.bytes());
            self.publishing = Some(Published::View(view));
            return Some(put);
        }
        if !self.board_behind {
            return None;
        }
        let mut board = self.board.content.clone().unwrap_or_else(Board::fresh);
        board.view += 1;
        let put = Wanted::Put(keys::board(), self.board.expect(), board.bytes());
        self.publishing = Some(Published::Board(board));
        Some(put)
    }

    /// Takes in what became of the writes.
    pub(crate) fn wrote(&mut self, now: Moment, answer: Result<&Reply, ErrorKind>) {
        if self.stage != Stage::Writing {
            return;
        }
        self.stage = Stage::Idle;
        // What was closed, refused or published shows in the next listing.
        self.next = if answer.is_ok() { now } else { now + Duration::from_millis(500) };
        let last = answer.ok().and_then(|reply| reply.writes.last());
        match (self.publishing.take(), last) {
            (Some(Published::View(view)), Some(Outcome::Applied(version))) => {
                self.view = Stored { content: Some(view), version: Some(version.clone()) };
                self.board_behind = true;
            }
            (Some(Published::Board(board)), Some(Outcome::Applied(version))) => {
                self.board = Stored { content: Some(board), version: Some(version.clone()) };
                self.board_behind = false;
            }
            (Some(_), _) => self.next = now + Duration::from_millis(100),
            (None, _) => {}
        }
    }

    fn current_view(&self) -> View {
        let before: BTreeMap<&MemberId, u32> = self
            .view
            .content
            .iter()
            .flat_map(|view| view.members.iter().map(|entry| (&entry.id, entry.number)))
            .collect();
        let mut taken: BTreeSet<u32> = before.values().copied().collect();
        let mut members = Vec::new();
        for (id, seen) in &self.members {
            let Some(profile) = self.profiles.get(id) else { continue };
            let number = before.get(id).copied().unwrap_or_else(|| lowest_free(&mut taken));
            members.push(ViewEntry {
                id: id.clone(),
                number,
                node: profile.node.clone(),
                state: seen.record.state,
                address: profile.address.clone(),
                labels: profile.labels.clone(),
                missing: self.missing.contains(id),
                joined_ms: profile.joined_ms,
            });
        }
        members.sort_by_key(|entry| entry.number);
        View { format: FORMAT, term: self.term, members, extra: crate::records::Extra::new() }
    }
}

fn lowest_free(taken: &mut BTreeSet<u32>) -> u32 {
    let free = (1..).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
    taken.insert(free);
    free
}

pub(crate) fn see<T: Content>(stored: &mut Stored<T>, found: Option<&Found>) {
    match found {
        Some(Found::Record(record)) => {
            stored.version = Some(record.version.clone());
            // What can't be read is replaced by what this leader knows.
            stored.content = T::read(record).ok();
        }
        Some(Found::Absent) => *stored = Stored::EMPTY,
        Some(Found::Unchanged | Found::Records(_)) | None => {}
    }
}

fn delete(writes: &mut Vec<Wanted>, id: &MemberId) {
    writes.push(Wanted::Delete(keys::profile(id)));
    writes.push(Wanted::Delete(keys::roster(id)));
    writes.push(Wanted::Delete(keys::report(id)));
    writes.push(Wanted::Delete(keys::member(id)));
}
