//! How duties stand, as anybody can see it from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use incumbent_core::records::{Ask, Intent, Unreadable};
use incumbent_core::{MemberId, keys};
use incumbent_duties::DutyId;
use incumbent_duties::records::Moved;
use serde::Serialize;

use super::picture::Picture;
use super::{Cluster, Leader};
use crate::error::ClusterError;

/// How one duty stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DutyStanding {
    /// Which duty.
    pub id: DutyId,
    /// Where in its life it is.
    pub condition: DutyCondition,
    /// The node that has it, or is to have it.
    pub node: Option<String>,
    /// The member behind that node.
    pub member: Option<MemberId>,
    /// Where that node can be reached.
    pub address: Option<String>,
    /// The term under which it runs, or ran last; 0 if it never did.
    pub term: u64,
    /// The version that it runs as, or is to, if its family names any.
    pub version: Option<String>,
    /// What the duty said last about itself.
    pub progress: Option<String>,
    /// How much it weighs, as its nodes say; 1 unless they say something else.
    pub weight: u64,
    /// Where an operator wants it, if anywhere.
    pub pinned: Option<Pinned>,
}

/// Where an operator wants a duty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pinned {
    /// The node's name.
    pub node: String,
    /// Whether it rather doesn't run than elsewhere.
    pub required: bool,
}

/// All that is known about duties, read at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// All duties, as [`Cluster::duties`] has them.
    pub duties: Vec<DutyStanding>,
    /// The last moves of duties, oldest first.
    pub moves: Vec<Moved>,
    /// What live members said about their load beside duties.
    pub loads: BTreeMap<MemberId, u64>,
    /// What operators ask for, oldest first.
    pub intents: Vec<Intent>,
    /// The records that can't be read: what hangs from them is missing in the rest.
    pub unreadable: Vec<Unreadable>,
}

/// Where in its life a duty is. It is derived from records and stored nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DutyCondition {
    /// A node shall run it, and has not reported that it does.
    Assigning,
    /// It runs, as of its node's last report.
    Active,
    /// It shall not run where it is, and has not stopped yet.
    Revoking,
    /// It runs nowhere, for this reason.
    Unassigned(String),
    /// It runs nowhere, because an operator wants it so.
    Paused,
    /// It ended by an error, and is started again after a while.
    Failing {
        /// The last error.
        error: String,
        /// How often in a row.
        times: u32,
        /// Whether another node shall try.
        gave_up: bool,
    },
    /// It ended by itself, and its node starts it no more.
    Done,
}

impl Cluster {
    /// All duties that live nodes list, and those that have not stopped yet although no node
    /// lists them any more.
    ///
    /// # Errors
    /// If the store can't be reached or a record can't be read.
    pub async fn duties(&self) -> Result<Vec<DutyStanding>, ClusterError> {
        Ok(self.picture().await?.standings())
    }

    /// All duties, their last moves, what nodes said about their load, and what operators ask for:
    /// as much work for the store as [`Self::duties`] alone.
    ///
    /// # Errors
    /// If the store can't be reached or a record can't be read.
    pub async fn workload(&self) -> Result<Workload, ClusterError> {
        let picture = self.picture().await?;
        let living = |member: &&MemberId| picture.members.contains_key(*member);
        let loads = picture.reports.iter().filter(|(member, _)| living(member));
        Ok(Workload {
            duties: picture.standings(),
            loads: loads.map(|(member, report)| (member.clone(), report.load)).collect(),
            moves: picture.moves.map(|moves| moves.moves).unwrap_or_default(),
            intents: picture.intents,
            unreadable: picture.unreadable,
        })
    }

    /// How one duty (`family/name`) stands; nothing if nobody knows it.
    ///
    /// # Errors
    /// If the name is not valid, the store can't be reached or a record can't be read.
    pub async fn duty(&self, duty: &str) -> Result<Option<DutyStanding>, ClusterError> {
        let duty = DutyId::parse(duty)?;
        let picture = self.picture().await?;
        let known = picture.duties.contains_key(&duty) || picture.holder(&duty).is_some();
        Ok(known.then(|| picture.standing(&duty)))
    }

    /// Which node has a duty (`family/name`) now, and where it can be reached: a cheap question,
    /// which reads the duty's lease and its holder and nothing else.
    ///
    /// # Errors
    /// As [`Self::duty`].
    pub async fn where_is(&self, duty: &str) -> Result<Option<Leader>, ClusterError> {
        let (this, lease) = (self.clone(), DutyId::parse(duty)?.lease());
        Ok(self.run(async move { this.read_lease(&lease).await }).await?.leader)
    }
}

impl Picture {
    pub(super) fn standings(&self) -> Vec<DutyStanding> {
        let held = self.leases.keys().filter(|duty| self.holder(duty).is_some());
        let all: BTreeSet<&DutyId> = self.duties.keys().chain(held).collect();
        all.into_iter().map(|duty| self.standing(duty)).collect()
    }

    pub(super) fn standing(&self, duty: &DutyId) -> DutyStanding {
        let holder = self.holder(duty).map(|(member, _)| member);
        let member = holder.or_else(|| self.wanted_on(duty));
        let profile = member.and_then(|member| self.members.get(member));
        let report = member.and_then(|member| self.reports.get(member));
        DutyStanding {
            id: duty.clone(),
            condition: self.condition(duty),
            node: profile.map(|profile| profile.node.clone()),
            member: member.cloned(),
            address: profile.and_then(|profile| profile.address.clone()),
            version: member.and_then(|it| self.version_on(it, duty)).map(ToOwned::to_owned),
            term: self.leases.get(duty).map_or(0, |lease| lease.term),
            progress: report.and_then(|report| report.progress.get(duty).cloned()),
            weight: self.weight_of(duty, member),
            pinned: self.pin_of(duty),
        }
    }

    /// What the description that it runs by says, or the heaviest while it runs by none.
    fn weight_of(&self, duty: &DutyId, member: Option<&MemberId>) -> u64 {
        let Some(specs) = self.duties.get(duty) else { return 1 };
        let version = member.and_then(|it| self.version_on(it, duty)).map(ToOwned::to_owned);
        let runs = member.and_then(|_| specs.get(&version)).map(|spec| spec.weight);
        runs.or_else(|| specs.values().map(|spec| spec.weight).max()).unwrap_or(1)
    }

    /// The last pin counts, as it does for the leader.
    fn pin_of(&self, duty: &DutyId) -> Option<Pinned> {
        self.asks()
            .filter_map(|ask| match ask {
                Ask::Pin { duty: it, node, required } if it == duty.as_str() => {
                    Some(Pinned { node: node.clone(), required: *required })
                }
                _ => None,
            })
            .last()
    }

    fn condition(&self, duty: &DutyId) -> DutyCondition {
        let holder = self.holder(duty).map(|(member, _)| member);
        match (self.wanted_on(duty), holder) {
            (Some(wanted), Some(holder)) if wanted == holder => self.getting_on(duty, holder),
            // Where a record can't be read, the others tell what there is to tell.
            (Some(wanted), None) if self.is_broken(&keys::lease(&duty.lease())) => {
                self.getting_on(duty, wanted)
            }
            (Some(_), _) => DutyCondition::Assigning,
            (None, Some(holder)) if self.is_broken(&keys::roster(holder)) => {
                self.getting_on(duty, holder)
            }
            (None, Some(_)) => DutyCondition::Revoking,
            (None, None) if self.is_paused(duty) => DutyCondition::Paused,
            (None, None) => DutyCondition::Unassigned(self.why_nowhere(duty)),
        }
    }

    /// How a duty gets on where it is wanted and its lease is held.
    fn getting_on(&self, duty: &DutyId, member: &MemberId) -> DutyCondition {
        let Some(report) = self.reports.get(member) else { return DutyCondition::Assigning };
        if let Some(failing) = report.failing.get(duty) {
            let (error, times, gave_up) = (failing.error.clone(), failing.times, failing.gave_up);
            return DutyCondition::Failing { error, times, gave_up };
        }
        if report.done.contains(duty) {
            DutyCondition::Done
        } else if report.waiting.contains(duty) || report.starting.contains(duty) {
            DutyCondition::Assigning
        } else {
            DutyCondition::Active
        }
    }

    fn is_paused(&self, duty: &DutyId) -> bool {
        let paused = |ask: &Ask| matches!(ask, Ask::Pause { duty: it } if it == duty.as_str());
        self.asks().any(paused)
    }

    fn why_nowhere(&self, duty: &DutyId) -> String {
        let lease = keys::lease(&duty.lease());
        let holder = self.leases.get(duty).and_then(|lease| lease.holder.as_ref());
        let holder = holder.map(|holder| keys::member(&holder.member));
        if let Some(broken) = holder.into_iter().chain([lease]).find(|key| self.is_broken(key)) {
            return format!("who runs it isn't known: {broken} can't be read");
        }
        let said = self.moves.as_ref().and_then(|moves| moves.unplaced.get(duty));
        match said {
            _ if self.leader.is_none() => "no node leads the cluster".to_owned(),
            Some(said) => said.clone(),
            None => "the leader has not placed it yet".to_owned(),
        }
    }
}

impl DutyCondition {
    /// The word that people use.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Assigning => "assigning",
            Self::Active => "active",
            Self::Revoking => "revoking",
            Self::Unassigned(_) => "unassigned",
            Self::Paused => "paused",
            Self::Failing { .. } => "failing",
            Self::Done => "done",
        }
    }
}

impl fmt::Display for DutyCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unassigned(reason) => write!(f, "unassigned: {reason}"),
            Self::Failing { error, times, .. } => write!(f, "failing ({times} in a row): {error}"),
            Self::Assigning | Self::Active | Self::Revoking | Self::Paused | Self::Done => {
                f.write_str(self.as_str())
            }
        }
    }
}
