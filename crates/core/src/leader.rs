//! What the leader of the cluster does: it lists the members, closes those that expired,
//! deletes what is long closed and publishes the view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use crate::census::WantedWrite;

use crate::census::Census;
use crate::keys;
use crate::mutant::{Mutant, Planted};
use crate::names::MemberId;
use crate::node::Config;
use crate::outbox::{Answered, Outbox, Purpose};
use crate::pace;
use crate::records::{
    Board, ClusterLead, Content, FORMAT, Intent, MemberRecord, MemberState, Profile, View,
    ViewEntry,
};
use crate::settings::Timing;
use crate::store::{Found, Key, Lane, Outcome, Read, Record, Version};
use crate::stored::{Stored, see};
use crate::time::Moment;

/// How many profiles are read at once.
const LARGEST_PAGE: usize = 256;

/// The leader's knowledge. It is rebuilt from records by every new leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leading {
    term: u64,
    stage: LeaderStage,
    /// When to list again.
    next: Moment,
    /// When it was listed last.
    last: Moment,
    /// A hint came after the listing on its way was sent.
    hinted: bool,
    census: Census,
    profiles: BTreeMap<MemberId, Arc<Profile>>,
    /// What operators ask for that is in force until they take it back.
    intents: BTreeMap<Key, (Version, Intent)>,
    /// The last listing showed that a profile is new or has changed.
    profile_moved: bool,
    /// Profiles are read a page at a time, each at most once after a listing.
    page: usize,
    asked: Vec<MemberId>,
    leases_asked: usize,
    tried: BTreeSet<MemberId>,
    /// Nothing is decided before all of them were asked for.
    filling: bool,
    /// Closed members that have no profile, and won't.
    nameless: BTreeSet<MemberId>,
    /// Counts what changed of members, profiles and intents.
    generation: u64,
    /// Counts those changes that make a plan wrong, and not only less than the best: somebody is
    /// gone, can do something else, or an operator asks for something else.
    upsets: u64,
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
enum LeaderStage {
    /// List at [`Leading::next`].
    Idle,
    Listing,
    /// The list is in: decide what to write.
    Listed,
    Writing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Published {
    View(View),
    Board(Board),
}

/// What a request of the leader's was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LeaderErrand {
    List,
    Write,
}

impl Leading {
    pub(crate) fn new(term: u64) -> Self {
        Self {
            term,
            stage: LeaderStage::Idle,
            next: Moment::START,
            last: Moment::START,
            hinted: false,
            census: Census::default(),
            profiles: BTreeMap::new(),
            intents: BTreeMap::new(),
            profile_moved: false,
            page: LARGEST_PAGE,
            asked: Vec::new(),
            leases_asked: 0,
            tried: BTreeSet::new(),
            filling: false,
            nameless: BTreeSet::new(),
            generation: 0,
            upsets: 0,
            missing: BTreeSet::new(),
            view: Stored::EMPTY,
            board: Stored::EMPTY,
            board_behind: true,
            publishing: None,
        }
    }

    /// The term in which it leads.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Grows when members, profiles or intents changed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Grows when what was planned before may be wrong now.
    #[must_use]
    pub fn upsets(&self) -> u64 {
        self.upsets
    }

    /// The members that are alive and have said who they are.
    pub fn living(&self) -> impl Iterator<Item = (&MemberId, &MemberRecord, &Arc<Profile>)> {
        self.census
            .members()
            .filter(|(_, record)| record.state == MemberState::Alive)
            .filter_map(|(id, record)| Some((id, record, self.profiles.get(id)?)))
    }

    /// Whether a member is alive, whether or not it has said who it is.
    #[must_use]
    pub fn is_alive(&self, id: &MemberId) -> bool {
        self.census.is_alive(id)
    }

    /// What a member says about itself.
    #[must_use]
    pub fn profile(&self, id: &MemberId) -> Option<&Profile> {
        self.profiles.get(id).map(Arc::as_ref)
    }

    /// What all members say about themselves, those that ended of late among them.
    pub fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values().map(Arc::as_ref)
    }

    /// What members say about themselves that are closed and did not leave in order: they may come
    /// back.
    pub fn lingering(&self) -> impl Iterator<Item = &Arc<Profile>> {
        let lingers = |record: &MemberRecord| {
            matches!(record.state, MemberState::Expired | MemberState::Evicted)
        };
        let lingering = self.census.members().filter(move |(_, record)| lingers(record));
        lingering.filter_map(|(id, _)| self.profiles.get(id))
    }

    /// A member's record.
    #[must_use]
    pub fn member(&self, id: &MemberId) -> Option<(&MemberRecord, &Version)> {
        self.census.member(id)
    }

    /// What operators ask for that is in force, unless it is about a lease.
    pub fn intents(&self) -> impl Iterator<Item = (&Key, &Version, &Intent)> {
        self.intents.iter().map(|(key, (version, intent))| (key, version, intent))
    }

    pub(crate) fn wake_at(&self) -> Moment {
        match self.stage {
            LeaderStage::Idle => self.next,
            LeaderStage::Listed => Moment::START,
            LeaderStage::Listing | LeaderStage::Writing => Moment::NEVER,
        }
    }

    /// Something may have changed: list soon, but not at every one of many hints.
    pub(crate) fn hint(&mut self, now: Moment) {
        self.hinted = true;
        self.next = self.next.min(now.max(self.last + pace::HINTED));
    }

    pub(crate) fn poll(&mut self, now: Moment, config: &Config, outbox: &mut Outbox) {
        let timing = &config.timing;
        match self.stage {
            LeaderStage::Idle if now >= self.next => {
                self.stage = LeaderStage::Listing;
                self.last = now;
                self.hinted = false;
                let reads = self.reads(now, timing);
                outbox.ask(now, Lane::Watch, reads, Purpose::Leader(LeaderErrand::List));
            }
            LeaderStage::Listed if self.filling => {
                self.stage = LeaderStage::Listing;
                let reads = self.reads(now, timing);
                outbox.ask(now, Lane::Watch, reads, Purpose::Leader(LeaderErrand::List));
            }
            LeaderStage::Listed => {
                let writes = self.review(now, timing, config.max_value, config.planted);
                self.next = self.next_listing(now, timing);
                self.tried.clear();
                if std::mem::take(&mut self.profile_moved) && self.stale_profiles().next().is_some()
                {
                    self.next = now + pace::SOONEST;
                }
                if self.hinted {
                    // What it is about may be newer than the list.
                    self.hint(now);
                }
                if writes.is_empty() {
                    self.stage = LeaderStage::Idle;
                    return;
                }
                self.stage = LeaderStage::Writing;
                let writes = writes.into_iter().map(|wanted| outbox.stamped(wanted)).collect();
                outbox.write(now, writes, Purpose::Leader(LeaderErrand::Write));
            }
            LeaderStage::Idle | LeaderStage::Listing | LeaderStage::Writing => {}
        }
    }

    fn reads(&mut self, now: Moment, timing: &Timing) -> Vec<Read> {
        let key = |key, version: &Option<Version>| Read::Key { key, unless: version.clone() };
        let mut reads = Vec::new();
        if !self.filling {
            self.tried.clear();
            // Members are the living and those that ended of late. Intents are few, and deleted a
            // while after they were obeyed.
            reads.extend([
                Read::Prefix(keys::intents()),
                Read::Prefix(keys::members()),
                key(keys::view(), &self.view.version),
                key(keys::board(), &self.board.version),
            ]);
            let leases = self.census.lease_reads(now, timing);
            self.leases_asked = leases.len();
            reads.extend(leases);
        }
        // Profiles come after their member records, and are read only while some are missing or
        // a beat said that one has changed.
        self.asked = self.stale_profiles().take(self.page).cloned().collect();
        self.tried.extend(self.asked.iter().cloned());
        reads.extend(self.asked.iter().map(|id| key(keys::profile(id), &None)));
        reads
    }

    fn stale_profiles(&self) -> impl Iterator<Item = &MemberId> {
        let stale = |(id, record): &(&MemberId, &MemberRecord)| {
            let known = self.profiles.get(*id).map(|profile| profile.revision);
            let alive = record.state == MemberState::Alive;
            !self.tried.contains(*id)
                && known.map_or(alive || !self.nameless.contains(*id), |revision| {
                    alive && revision < record.profile
                })
        };
        self.census.members().filter(stale).map(|(id, _)| id)
    }

    /// Listed at every beat, and at the moment when a member that stands still expires.
    fn next_listing(&self, now: Moment, timing: &Timing) -> Moment {
        (now + timing.beat).min(self.census.next_expiry()).max(now + pace::SOONEST)
    }

    pub(crate) fn replied(
        &mut self,
        now: Moment,
        asked: LeaderErrand,
        answer: Answered<'_>,
        config: &Config,
    ) {
        match asked {
            LeaderErrand::List => self.listed(now, answer, &config.timing, config.planted),
            LeaderErrand::Write => self.wrote(now, answer),
        }
    }

    /// Takes in a listing.
    fn listed(&mut self, now: Moment, answer: Answered<'_>, timing: &Timing, planted: Planted) {
        if self.stage != LeaderStage::Listing {
            return;
        }
        let Ok(reply) = answer else {
            self.stage = LeaderStage::Idle;
            self.filling = false;
            self.page = (self.page / 2).max(1);
            self.next = now + pace::LEADER_RETRY;
            return;
        };
        self.page = (self.page * 2).min(LARGEST_PAGE);
        let mut reads = reply.reads.iter();
        if !self.filling {
            if let Some(Found::Records(records)) = reads.next() {
                self.see_intents(now, records, timing);
            }
            if let Some(Found::Records(records)) = reads.next() {
                self.see_members(now, records);
            }
            see(&mut self.view, reads.next());
            see(&mut self.board, reads.next());
            let leases = reads.by_ref().take(self.leases_asked);
            self.census.see_leases(now, leases, planted);
        }
        for (id, found) in std::mem::take(&mut self.asked).into_iter().zip(reads) {
            self.see_profile(id, found);
        }
        let more = self.stale_profiles().next().is_some();
        self.filling = more;
        self.stage = LeaderStage::Listed;
    }

    fn see_members(&mut self, now: Moment, records: &[Record]) {
        let news = self.census.see_members(now, records);
        self.generation += news.changes;
        self.upsets += news.upsets;
        self.profile_moved |= news.profiles;
        self.profiles.retain(|id, _| self.census.member(id).is_some());
        self.nameless.retain(|id| self.census.member(id).is_some());
    }

    fn see_profile(&mut self, id: MemberId, found: &Found) {
        let profile = match found {
            Found::Record(stored) => Profile::read(stored).ok(),
            Found::Absent | Found::Unchanged | Found::Records(_) => None,
        };
        let Some(profile) = profile else {
            if !self.is_alive(&id) {
                self.nameless.insert(id);
            }
            return;
        };
        if self.profile(&id) != Some(&profile) && self.census.member(&id).is_some() {
            let before = self.profiles.insert(id, Arc::new(profile));
            self.generation += 1;
            self.upsets += u64::from(before.is_some());
        }
    }

    fn see_intents(&mut self, now: Moment, records: &[Record], timing: &Timing) {
        let intents = self.census.see_intents(now, records, timing);
        if intents != self.intents {
            self.intents = intents;
            self.generation += 1;
            self.upsets += 1;
        }
    }

    /// Decides what to write: closings and deletions, and the view if it changed.
    fn review(
        &mut self,
        now: Moment,
        timing: &Timing,
        max_value: usize,
        planted: Planted,
    ) -> Vec<WantedWrite> {
        let mut writes = self.census.review(now, timing, planted);
        writes.extend(self.publish(max_value, planted));
        writes
    }

    /// The view if it changed, then the board that points to it.
    fn publish(&mut self, max_value: usize, planted: Planted) -> Option<WantedWrite> {
        let view = self.current_view(max_value);
        let stored = self.view.content.as_ref();
        // A later term than ours there is one that the store has forgotten since: the lease is ours.
        let steady = stored.is_some_and(|stored| stored.members == view.members);
        if !steady || planted.is(Mutant::RewritesSteadyView) {
            let put = WantedWrite::Put(keys::view(), self.view.expect(), view.bytes());
            self.publishing = Some(Published::View(view));
            // From now on the view may be there, whatever is heard of it: the board is behind
            // until it was raised.
            self.board_behind |= !planted.is(Mutant::ViewInDoubtForgotten);
            return Some(put);
        }
        if !self.board_behind {
            return None;
        }
        let mut board = self.board.content.clone().unwrap_or_else(Board::fresh);
        board.view = board.view.saturating_add(1);
        let put = WantedWrite::Put(keys::board(), self.board.expect(), board.bytes());
        self.publishing = Some(Published::Board(board));
        Some(put)
    }

    /// Takes in what became of the writes.
    fn wrote(&mut self, now: Moment, answer: Answered<'_>) {
        if self.stage != LeaderStage::Writing {
            return;
        }
        self.stage = LeaderStage::Idle;
        self.census.wrote(answer.is_ok());
        // What was closed, refused or published shows in the next listing.
        self.next = if answer.is_ok() { now } else { now + pace::LEADER_RETRY };
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
            (Some(_), _) => self.next = now + pace::PUBLISH_RETRY,
            (None, _) => {}
        }
    }

    /// The members that should lead next: those that serve all families that anybody serves. Nobody
    /// where that is true of all, so that nothing is said where there is nothing to choose.
    fn preferred(&self) -> BTreeSet<&MemberId> {
        let families: BTreeSet<&String> =
            self.living().flat_map(|(_, _, profile)| profile.families.keys()).collect();
        let serves_all = |profile: &Profile| {
            families.iter().all(|family| profile.families.contains_key(*family))
        };
        let ready =
            || self.living().filter(|(_, _, profile)| profile.cluster_lead == ClusterLead::Normal);
        if ready().all(|(_, _, profile)| serves_all(profile)) {
            return BTreeSet::new();
        }
        ready().filter(|(_, _, profile)| serves_all(profile)).map(|(id, ..)| id).collect()
    }

    fn current_view(&self, max_value: usize) -> View {
        let before: BTreeMap<&MemberId, u32> = self
            .view
            .content
            .iter()
            .flat_map(|view| view.members.iter().map(|entry| (&entry.id, entry.number)))
            .collect();
        let mut taken: BTreeSet<u32> = before.values().copied().collect();
        let preferred = self.preferred();
        let mut members = Vec::new();
        for (id, record) in self.census.members() {
            let Some(profile) = self.profiles.get(id) else { continue };
            let number = before.get(id).copied().unwrap_or_else(|| lowest_free(&mut taken));
            members.push(ViewEntry {
                id: id.clone(),
                number,
                node: profile.node.clone(),
                state: record.state,
                address: profile.address.clone(),
                labels: profile.labels.clone(),
                missing: self.missing.contains(id),
                preferred: preferred.contains(id),
                joined_ms: profile.joined_ms,
            });
        }
        members.sort_by_key(|entry| entry.number);
        let extra = crate::records::Extra::new();
        let mut view = View { format: FORMAT, term: self.term, members, left_out: None, extra };
        view.cut(max_value);
        view
    }
}

fn lowest_free(taken: &mut BTreeSet<u32>) -> u32 {
    let free = (1..).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
    taken.insert(free);
    free
}
