//! All records about duties, read at once.

use std::collections::BTreeMap;

use incumbent_core::records::{
    Catalog, Content, DutySpec, LeaseRecord, MemberRecord, MemberState, Moves, Profile, Report,
    Roster, Wish,
};
use incumbent_core::store::{Exchange, Found, Lane, Read};
use incumbent_core::survey::{self, Survey};
use incumbent_core::{DutyId, LeaseName, MemberId, keys};

use super::Cluster;
use super::reading::{nonsense, records};
use crate::error::ClusterError;

/// What the leases of duties begin with.
pub(super) const LEASES: &str = "incumbent/duty/";

/// What the records say about duties. They are read together but not in one instant, so what is
/// just changing may look contradictory; it is for display and decides nothing.
pub(super) struct Picture {
    /// The members that are alive and have said who they are.
    pub(super) members: BTreeMap<MemberId, Profile>,
    pub(super) rosters: BTreeMap<MemberId, Roster>,
    pub(super) reports: BTreeMap<MemberId, Report>,
    /// All duties that live members list.
    pub(super) duties: BTreeMap<DutyId, DutySpec>,
    pub(super) leases: BTreeMap<DutyId, LeaseRecord>,
    pub(super) wishes: Vec<Wish>,
    pub(super) moves: Option<Moves>,
    pub(super) leader: Option<MemberId>,
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
        ];
        let wishes = self.open_intents().await?;
        let reply = self.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        let mut found = reply.reads.into_iter();
        let leases: Vec<LeaseRecord> = read_all(found.next())?;
        let rosters: Vec<Roster> = read_all(found.next())?;
        let reports: Vec<Report> = read_all(found.next())?;
        let catalogs = named(found.next())?;
        let profiles = named(found.next())?;
        let members: Vec<MemberRecord> = read_all(found.next())?;
        let leader: Option<LeaseRecord> = read_one(found.next())?;
        let moves: Option<Moves> = read_one(found.next())?;

        let living: BTreeMap<MemberId, Profile> = members
            .into_iter()
            .filter(|member| member.state == MemberState::Alive)
            .filter_map(|member| {
                let profile = profiles.get(keys::profile(&member.id).as_str())?;
                Some((member.id, Profile::clone(profile)))
            })
            .collect();
        Ok(Picture {
            duties: listed(&living, &catalogs),
            rosters: rosters.into_iter().map(|roster| (roster.member.clone(), roster)).collect(),
            reports: reports.into_iter().map(|report| (report.member.clone(), report)).collect(),
            leases: leases.into_iter().filter_map(of_duty).collect(),
            wishes: wishes.into_iter().map(|(intent, _)| intent.wish).collect(),
            moves,
            leader: leader
                .and_then(|lease| lease.holder)
                .map(|holder| holder.member)
                .filter(|member| living.contains_key(member)),
            members: living,
        })
    }
}

impl Picture {
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
            avoided: avoided
                .map(|(duty, members)| (duty.clone(), members.iter().cloned().collect()))
                .collect(),
            wishes: self.wishes.clone(),
            policy,
        }
    }
}

/// The duties on the lists that live members name.
fn listed(
    members: &BTreeMap<MemberId, Profile>,
    catalogs: &BTreeMap<String, Catalog>,
) -> BTreeMap<DutyId, DutySpec> {
    let hashes = members.values().flat_map(|profile| profile.families.values());
    let hashes = hashes.flat_map(|family| &family.catalogs);
    survey::known(hashes.filter_map(|hash| catalogs.get(keys::catalog(hash).as_str())))
}

fn of_duty(lease: LeaseRecord) -> Option<(DutyId, LeaseRecord)> {
    let duty = DutyId::parse(lease.name.strip_prefix(LEASES)?).ok()?;
    Some((duty, lease))
}

fn read_all<T: Content>(found: Option<Found>) -> Result<Vec<T>, ClusterError> {
    records(found)?.iter().map(|stored| Ok(T::read(stored)?)).collect()
}

fn named<T: Content>(found: Option<Found>) -> Result<BTreeMap<String, T>, ClusterError> {
    let read = |stored: &incumbent_core::store::Record| {
        Ok((stored.key.as_str().to_owned(), T::read(stored)?))
    };
    records(found)?.iter().map(read).collect()
}

fn read_one<T: Content>(found: Option<Found>) -> Result<Option<T>, ClusterError> {
    match found {
        Some(Found::Record(stored)) => Ok(Some(T::read(&stored)?)),
        Some(Found::Absent) => Ok(None),
        Some(Found::Unchanged | Found::Records(_)) | None => Err(nonsense().into()),
    }
}
