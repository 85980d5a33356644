//! All records about duties, read at once.

use std::collections::BTreeMap;

use incumbent_core::records::{
    Ask, Content, Intent, LeaseRecord, MemberRecord, MemberState, Profile, Unreadable, sift,
};
use incumbent_core::store::{Exchange, Found, Key, Lane, Read, Record};
use incumbent_core::{LeaseName, MemberId, keys};
use incumbent_duties::DutyId;
use incumbent_duties::records::{Catalog, Moves, Report, Rollout, Roster};
use incumbent_duties::survey::{self, Descriptions, Survey};
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
    pub(super) reports: BTreeMap<MemberId, Report>,
    /// All duties that live members list.
    pub(super) duties: BTreeMap<DutyId, Descriptions>,
    pub(super) leases: BTreeMap<DutyId, LeaseRecord>,
    /// What operators ask for.
    pub(super) intents: Vec<Intent>,
    pub(super) moves: Option<Moves>,
    pub(super) rollout: Rollout,
    /// The order of the versions of each family that names any.
    pub(super) lineages: BTreeMap<String, Lineage>,
    pub(super) leader: Option<MemberId>,
    /// Records that can't be read: what they would say is missing here.
    pub(super) unreadable: Vec<Unreadable>,
}

impl Cluster {
    pub(super) async fn read_picture(&self) -> Result<Picture, ClusterError> {
        let key = |key| Read::Key { key, unless: None };
        // Leases before members: a member that is read later is at least as new as what names it.
        let reads = vec![
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
        let (intents, mut unreadable) = self.open_intents().await?;
        let mut intents: Vec<Intent> = intents.into_iter().map(|(intent, _)| intent).collect();
        intents.sort_by(oldest_first);
        let broken = &mut unreadable;
        let reply = self.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        let mut found = reply.reads.into_iter();
        let leases: Vec<LeaseRecord> = sift(&records(found.next())?, broken);
        let rosters: Vec<Roster> = sift(&records(found.next())?, broken);
        let reports: Vec<Report> = sift(&records(found.next())?, broken);
        let catalogs = named(&records(found.next())?, broken);
        let profiles = named(&records(found.next())?, broken);
        let members: Vec<MemberRecord> = sift(&records(found.next())?, broken);
        let leader: Option<LeaseRecord> = read_one(found.next(), broken)?;
        let moves: Option<Moves> = read_one(found.next(), broken)?;
        let rollout: Option<Rollout> = read_one(found.next(), broken)?;
        let rollout = rollout.unwrap_or_default();

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
        let duties = listed(&living, &catalogs);
        let lineages = survey::lineages(&living, &duties, &rollout).into_iter();
        Ok(Picture {
            lineages: lineages.map(|(family, it)| (family.to_owned(), it)).collect(),
            rollout,
            duties,
            rosters: rosters.into_iter().map(|roster| (roster.member.clone(), roster)).collect(),
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
        })
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
        let wants = |roster: &&Roster| {
            roster.duties.contains(duty) && self.members.contains_key(&roster.member)
        };
        self.rosters.values().find(wants).map(|roster| &roster.member)
    }

    /// The version that a duty runs as on a member, or would.
    pub(super) fn version_on(&self, member: &MemberId, duty: &DutyId) -> Option<&str> {
        let family = self.members.get(member)?.families.get(duty.family())?;
        let lineage = self.lineages.get(duty.family());
        survey::runs_as(family, self.duties.get(duty)?, lineage)?.version.as_deref()
    }

    /// Who prepares for which duty, and whether it said that it has.
    pub(super) fn preparing(&self) -> BTreeMap<DutyId, (MemberId, bool)> {
        let living = |roster: &&Roster| self.members.contains_key(&roster.member);
        let mut preparing = BTreeMap::new();
        for roster in self.rosters.values().filter(living) {
            let report = self.reports.get(&roster.member);
            for duty in &roster.preparing {
                let prepared = report.is_some_and(|report| report.prepared.contains(duty));
                preparing.insert(duty.clone(), (roster.member.clone(), prepared));
            }
        }
        preparing
    }

    /// Whether the record under this key can't be read.
    pub(super) fn is_broken(&self, key: &Key) -> bool {
        self.unreadable.iter().any(|it| it.key == key.as_str())
    }

    /// Whether a list of duties can't be read.
    fn lacks_lists(&self) -> bool {
        self.unreadable.iter().any(|it| it.key.starts_with(keys::catalogs().as_str()))
    }

    /// What a plan depends on, as the leader would see it.
    pub(super) fn survey(&self, policy: incumbent_planner::Policy) -> Survey {
        let mut homes = BTreeMap::new();
        for (id, roster) in &self.rosters {
            homes.extend(roster.duties.iter().map(|duty| (duty.clone(), id.clone())));
        }
        let avoided = self.moves.iter().flat_map(|moves| &moves.avoided);
        Survey {
            members: self.members.clone(),
            leader: self.leader.clone(),
            loads: self.reports.iter().map(|(id, report)| (id.clone(), report.load)).collect(),
            duties: self.duties.clone(),
            homes,
            ran: BTreeMap::new(),
            avoided: avoided
                .map(|(duty, members)| (duty.clone(), members.iter().cloned().collect()))
                .collect(),
            asks: self.asks().cloned().collect(),
            incomplete: self.lacks_lists(),
            rollout: self.rollout.clone(),
            preparing: self.preparing(),
            policy,
        }
    }
}

/// The duties on the lists that live members name.
fn listed(
    members: &BTreeMap<MemberId, Profile>,
    catalogs: &BTreeMap<String, Catalog>,
) -> BTreeMap<DutyId, Descriptions> {
    let hashes = members.values().flat_map(|profile| profile.families.values());
    let hashes = hashes.flat_map(|family| &family.catalogs);
    survey::known(hashes.filter_map(|hash| catalogs.get(keys::catalog(hash).as_str())))
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
