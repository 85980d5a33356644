//! All records about duties, read at once.

use std::collections::{BTreeMap, BTreeSet};

use incumbent_core::mutant::Planted;
use incumbent_core::records::{
    Ask, Content, Intent, IntentState, LeaseRecord, MemberRecord, MemberState, Profile, Unreadable,
    sift,
};
use incumbent_core::store::{Exchange, Found, Key, Lane, Read, Record};
use incumbent_core::{LeaseName, MemberId, keys};
use incumbent_duties::DutyId;
use incumbent_duties::records::{Catalog, Moves, Report, Rollout, Roster};
use incumbent_duties::survey::{self, Descriptions, LeaderMemory, PlanAnswer, PlanBasis, Survey};
use incumbent_duties::version::Lineage;

use super::Cluster;
use super::asks::oldest_first;
use super::reading::{nonsense, records};
use crate::error::ClusterError;

/// What the records say about duties. They are read together but not in one instant, so what is
/// just changing may look contradictory; it is for display and decides nothing.
pub(super) struct Picture {
    /// The members that are alive and have said who they are.
    pub(super) members: BTreeMap<MemberId, Profile>,
    pub(super) rosters: BTreeMap<MemberId, Roster>,
    /// The live member whose roster names a duty. It is asked for each of them, and there may be thousands of both.
    wanted: BTreeMap<DutyId, MemberId>,
    pub(super) reports: BTreeMap<MemberId, Report>,
    /// All duties that live members list.
    pub(super) duties: BTreeMap<DutyId, Descriptions>,
    pub(super) leases: BTreeMap<DutyId, LeaseRecord>,
    /// What operators ask for.
    pub(super) intents: Vec<Intent>,
    pub(super) moves: Option<Moves>,
    pub(super) rollout: Option<Rollout>,
    /// The lists of duties, by their keys.
    catalogs: BTreeMap<String, Catalog>,
    /// The order of the versions of each family that names any.
    pub(super) lineages: BTreeMap<String, Lineage>,
    pub(super) leader: Option<MemberId>,
    /// The term of the last leader.
    term: u64,
    /// How large a record may be.
    max_value: usize,
    /// Records that can't be read: what they would say is missing here.
    pub(super) unreadable: Vec<Unreadable>,
}

impl Cluster {
    /// The same as [`Self::read_picture`], for who is not on incumbent's thread.
    pub(super) async fn picture(&self) -> Result<Picture, ClusterError> {
        let this = self.clone();
        self.run(async move { this.read_picture().await }).await
    }

    pub(super) async fn read_picture(&self) -> Result<Picture, ClusterError> {
        let key = |key| Read::Key { key, unless: None };
        // Leases before members: a member that is read later is at least as new as what names it.
        let reads = vec![
            Read::Prefix(keys::intents()),
            Read::Prefix(keys::duty_leases()),
            Read::Prefix(keys::rosters()),
            Read::Prefix(keys::reports()),
            Read::Prefix(keys::catalogs()),
            Read::Prefix(keys::profiles()),
            Read::Prefix(keys::members()),
            key(keys::lease(&LeaseName::leader())),
            key(keys::moves()),
            key(keys::rollout()),
        ];
        let reply = self.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        let mut found = reply.reads.into_iter();
        let mut unreadable = Vec::new();
        let broken = &mut unreadable;
        let mut intents: Vec<Intent> = sift(&records(found.next())?, broken);
        intents.retain(|intent| intent.state == IntentState::Open);
        intents.sort_by(oldest_first);
        let leases: Vec<LeaseRecord> = sift(&records(found.next())?, broken);
        let rosters: Vec<Roster> = sift(&records(found.next())?, broken);
        let reports: Vec<Report> = sift(&records(found.next())?, broken);
        let catalogs = named(&records(found.next())?, broken);
        let profiles = named(&records(found.next())?, broken);
        let members: Vec<MemberRecord> = sift(&records(found.next())?, broken);
        let leader: Option<LeaseRecord> = read_one(found.next(), broken)?;
        let moves: Option<Moves> = read_one(found.next(), broken)?;
        let rollout: Option<Rollout> = read_one(found.next(), broken)?;
        let living: BTreeMap<MemberId, Profile> = members
            .into_iter()
            .filter(|member| member.state == MemberState::Alive)
            .filter_map(|member| {
                let key = keys::profile(&member.id);
                // It lives, whatever became of what it said about itself.
                let broken = broken.iter().any(|it| it.key == key.as_str());
                let unknown = broken.then(|| Profile::named("?"));
                let profile = profiles.get(key.as_str()).cloned().or(unknown)?;
                Some((member.id, profile))
            })
            .collect();
        let rosters: BTreeMap<MemberId, Roster> =
            rosters.into_iter().map(|roster| (roster.member.clone(), roster)).collect();
        let mut picture = Picture {
            lineages: BTreeMap::new(),
            rollout,
            duties: survey::known(named_lists(&living, &catalogs).0),
            catalogs,
            term: leader.as_ref().map_or(0, |lease| lease.term),
            max_value: self.store.capabilities().max_value,
            wanted: wanted(&rosters, &living),
            rosters,
            reports: reports.into_iter().map(|report| (report.member.clone(), report)).collect(),
            leases: leases.into_iter().filter_map(of_duty).collect(),
            intents,
            moves,
            leader: leader
                .and_then(|lease| lease.holder)
                .map(|holder| holder.member)
                .filter(|member| living.contains_key(member)),
            members: living,
            unreadable,
        };
        let survey = picture.basis().survey(incumbent_planner::Policy::default());
        let lineages = survey.lineages().into_iter();
        picture.lineages = lineages.map(|(family, it)| (family.to_owned(), it)).collect();
        Ok(picture)
    }
}

impl Picture {
    /// What operators ask for.
    pub(super) fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.intents.iter().map(|intent| &intent.ask)
    }

    pub(super) fn knows_duty(&self, duty: &str) -> bool {
        self.duties.keys().any(|known| known.as_str() == duty)
    }

    pub(super) fn knows_node(&self, node: &str) -> bool {
        self.members.values().any(|profile| profile.node == node)
    }

    /// The live member that holds the lease of a duty, and in which term.
    pub(super) fn holder(&self, duty: &DutyId) -> Option<(&MemberId, u64)> {
        let lease = self.leases.get(duty)?;
        let holder = &lease.holder.as_ref()?.member;
        self.members.contains_key(holder).then_some((holder, lease.term))
    }

    /// The live member whose roster names a duty.
    pub(super) fn wanted_on(&self, duty: &DutyId) -> Option<&MemberId> {
        self.wanted.get(duty)
    }

    /// The version that a duty runs as on a member, or would.
    pub(super) fn version_on(&self, member: &MemberId, duty: &DutyId) -> Option<&str> {
        let family = self.members.get(member)?.families.get(duty.family())?;
        let lineage = self.lineages.get(duty.family());
        survey::runs_as(family, self.duties.get(duty)?, lineage)?.version.as_deref()
    }

    /// Whether the record under this key can't be read.
    pub(super) fn is_broken(&self, key: &Key) -> bool {
        self.unreadable.iter().any(|it| it.key == key.as_str())
    }

    /// What the leader's next plan goes by, as far as records tell it.
    pub(super) fn basis(&self) -> PlanBasis<'_> {
        let (lists, missing) = named_lists(&self.members, &self.catalogs);
        let avoided = self.moves.iter().flat_map(|moves| &moves.avoided);
        PlanBasis {
            members: self.members.iter().collect(),
            leader: self.leader.as_ref(),
            term: self.term,
            rosters: self.rosters.iter().collect(),
            loads: survey::loads(&self.reports),
            prepared: survey::prepared(&self.reports),
            lists,
            lists_missing: missing,
            intents: self.intents.iter().collect(),
            avoided: avoided
                .map(|(duty, members)| (duty.clone(), members.iter().cloned().collect()))
                .collect(),
            rollout: self.rollout.as_ref(),
            memory: if self.is_placed() { LeaderMemory::default() } else { self.inherited() },
            planted: Planted::default(),
        }
    }

    /// The plan that the leader would make of it.
    pub(super) fn answer(&self, survey: &Survey) -> PlanAnswer {
        survey.answer(survey.room(self.max_value), &incumbent_planner::plan)
    }

    /// Whether rosters are of the present leader, so that it knows why a duty is on none of them.
    fn is_placed(&self) -> bool {
        let living = |roster: &&Roster| self.members.contains_key(&roster.member);
        self.rosters.values().filter(living).any(|roster| roster.term == self.term)
    }

    /// What a leader takes over from the one before.
    fn inherited(&self) -> LeaderMemory<'_> {
        let living = |(id, _): &(&MemberId, &Report)| self.members.contains_key(*id);
        let ending = self.reports.iter().filter(living);
        let successors = self.rosters.values().flat_map(|roster| &roster.successors);
        LeaderMemory {
            ending: ending
                .map(|(id, report)| (id.clone(), report.draining.iter().cloned().collect()))
                .collect(),
            on_the_way: successors.map(|(duty, to)| (duty.clone(), to.clone())).collect(),
            ..LeaderMemory::default()
        }
    }
}

/// Where duties are wanted, by the rosters of the living; on the first of them, should there be several.
fn wanted(
    rosters: &BTreeMap<MemberId, Roster>,
    living: &BTreeMap<MemberId, Profile>,
) -> BTreeMap<DutyId, MemberId> {
    let mut wanted = BTreeMap::new();
    for (member, roster) in rosters.iter().filter(|(member, _)| living.contains_key(*member)) {
        for duty in &roster.duties {
            wanted.entry(duty.clone()).or_insert_with(|| member.clone());
        }
    }
    wanted
}

/// The lists that live members name, and whether one of them isn't there.
fn named_lists<'a>(
    members: &BTreeMap<MemberId, Profile>,
    catalogs: &'a BTreeMap<String, Catalog>,
) -> (Vec<&'a Catalog>, bool) {
    let families = members.values().flat_map(|profile| profile.families.values());
    let hashes: BTreeSet<&String> = families.flat_map(|family| &family.catalogs).collect();
    let list = |hash: &String| catalogs.get(keys::catalog(hash).as_str());
    let lists: Vec<&Catalog> = hashes.iter().filter_map(|hash| list(hash)).collect();
    let missing = lists.len() < hashes.len();
    (lists, missing)
}

fn of_duty(lease: LeaseRecord) -> Option<(DutyId, LeaseRecord)> {
    let duty = DutyId::under(&lease.name)?;
    Some((duty, lease))
}

fn named<T: Content>(records: &[Record], unreadable: &mut Vec<Unreadable>) -> BTreeMap<String, T> {
    let one = |stored: &Record| {
        let content = sift([stored], unreadable).pop()?;
        Some((stored.key.as_str().to_owned(), content))
    };
    records.iter().filter_map(one).collect()
}

fn read_one<T: Content>(
    found: Option<Found>,
    unreadable: &mut Vec<Unreadable>,
) -> Result<Option<T>, ClusterError> {
    match found {
        Some(Found::Record(stored)) => Ok(sift([&stored], unreadable).pop()),
        Some(Found::Absent) => Ok(None),
        Some(Found::Unchanged | Found::Records(_)) | None => Err(nonsense().into()),
    }
}
