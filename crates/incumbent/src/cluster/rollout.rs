//! How new versions of families get on, and what operators say about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use incumbent_core::MemberId;
use incumbent_core::records::{Ask, Canary};
use incumbent_duties::DutyId;
use incumbent_duties::duty::check_family;
use incumbent_duties::records::FamilyRollout;
use incumbent_duties::survey::Trial;
use incumbent_duties::version::{Basis, Lineage};

use super::picture::Picture;
use super::{Asked, Cluster};
use crate::error::ClusterError;

/// How the versions of one family stand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RolloutStanding {
    /// Which family.
    pub family: String,
    /// What decides which version is the newest.
    pub basis: Basis,
    /// Its versions, the newest first.
    pub versions: Vec<VersionStanding>,
    /// How many duties the newest version lists, and so should run it in the end.
    pub listed: usize,
    /// How the newest version is tried, if it is on trial.
    pub trial: Option<Trial>,
    /// Where it is.
    pub state: RolloutState,
}

/// How one version of a family stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionStanding {
    /// Which; nothing for duties that name none.
    pub version: Option<String>,
    /// The nodes that can run it.
    pub nodes: Vec<String>,
    /// How many duties are on nodes that run it.
    pub duties: usize,
    /// The duties that its nodes prepare for, with the node of each.
    pub preparing: BTreeMap<DutyId, String>,
    /// The duties that came back from it, and why.
    pub returned: BTreeMap<DutyId, String>,
    /// Why no duty shall run it, if so.
    pub aborted: Option<String>,
    /// Whether it is past its trial.
    pub promoted: bool,
}

/// Where a rollout is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RolloutState {
    /// All duties that should run the newest version do.
    Settled,
    /// An operator holds it.
    Held,
    /// The newest version was given up, for this reason.
    Aborted(String),
    /// Some run the newest version, and must be well before the rest follows.
    OnTrial,
    /// Some came back from the newest version, the first for this reason.
    Returned(String),
    /// Nodes prepare, or duties change over.
    Moving,
    /// The nodes of the newest version have no room for more.
    NoRoom,
}

impl Cluster {
    /// How the versions of all families stand that name any.
    ///
    /// # Errors
    /// If the store can't be reached or a record can't be read.
    pub async fn rollouts(&self) -> Result<Vec<RolloutStanding>, ClusterError> {
        let picture = self.picture().await?;
        let lineages = picture.lineages.iter();
        Ok(lineages.map(|(family, lineage)| picture.rollout_of(family, lineage)).collect())
    }

    /// Moves no duty of a family to a newer version, until [`Self::resume_rollout`],
    /// [`Self::promote`] or [`Self::abort_rollout`].
    ///
    /// # Errors
    /// If the name is not valid or the store can't be reached.
    pub async fn hold_rollout(&self, family: &str) -> Result<Asked, ClusterError> {
        check_family(family)?;
        self.ask(Ask::Hold { family: family.to_owned() }).await
    }

    /// Takes [`Self::hold_rollout`] back.
    ///
    /// # Errors
    /// As there.
    pub async fn resume_rollout(&self, family: &str) -> Result<Asked, ClusterError> {
        check_family(family)?;
        self.unask(Ask::Hold { family: family.to_owned() }).await
    }

    /// Moves all duties of a family to its newest version as far as there is room, also those that
    /// came back from it: ends its trial, and forgets what spoke against it. Asks for nothing if
    /// the family has no versions.
    ///
    /// # Errors
    /// As [`Self::hold_rollout`].
    pub async fn promote(&self, family: &str) -> Result<Asked, ClusterError> {
        let about = |family, version| Ask::Promote { family, version };
        self.ask_about_newest(family, about).await
    }

    /// Takes all duties of a family back from its newest version, as far as nodes of others have
    /// room, until [`Self::promote`]. Asks for nothing if the family has no versions.
    ///
    /// # Errors
    /// As [`Self::hold_rollout`].
    pub async fn abort_rollout(&self, family: &str) -> Result<Asked, ClusterError> {
        let about = |family, version| Ask::Abort { family, version };
        self.ask_about_newest(family, about).await
    }

    /// How new versions of a family are tried, whatever their nodes say; `None` takes that back.
    ///
    /// # Errors
    /// As [`Self::hold_rollout`].
    pub async fn set_canary(
        &self,
        family: &str,
        canary: Option<Canary>,
    ) -> Result<Asked, ClusterError> {
        check_family(family)?;
        let family = family.to_owned();
        match canary {
            Some(canary) => self.ask(Ask::Canary { family, canary }).await,
            None => self.unask(Ask::Canary { family, canary: Canary::default() }).await,
        }
    }

    async fn ask_about_newest(
        &self,
        family: &str,
        ask: impl FnOnce(String, String) -> Ask,
    ) -> Result<Asked, ClusterError> {
        check_family(family)?;
        let picture = self.picture().await?;
        let newest = picture.lineages.get(family).and_then(Lineage::newest);
        match newest {
            Some(newest) => self.ask(ask(family.to_owned(), newest.to_owned())).await,
            None => Ok(Asked { unknown: vec![family.to_owned()], ..Asked::default() }),
        }
    }
}

impl Picture {
    fn rollout_of(&self, family: &str, lineage: &Lineage) -> RolloutStanding {
        let mut order: Vec<Option<&str>> = lineage.versions().into_iter().map(Some).collect();
        let of_family = || self.duties.iter().filter(|(id, _)| id.family() == family);
        if of_family().any(|(_, specs)| specs.contains_key(&None)) {
            order.push(None);
        }
        let known = self.rollout.as_ref().and_then(|rollout| rollout.families.get(family));
        let versions: Vec<VersionStanding> =
            order.iter().map(|version| self.version_of(family, *version, known)).collect();
        let newest = lineage.newest().map(ToOwned::to_owned);
        let listed = of_family().filter(|(_, specs)| specs.contains_key(&newest)).count();
        let survey = self.basis().survey(incumbent_planner::Policy::default());
        let trial = survey.trial(family, lineage);
        let mut standing = RolloutStanding {
            family: family.to_owned(),
            basis: lineage.basis(),
            versions,
            listed,
            trial,
            state: RolloutState::Settled,
        };
        standing.state = self.state_of(&standing);
        standing
    }

    fn version_of(
        &self,
        family: &str,
        version: Option<&str>,
        known: Option<&FamilyRollout>,
    ) -> VersionStanding {
        let homes = self.rosters.values().filter(|it| self.members.contains_key(&it.member));
        let runs = |(member, duty): &(&MemberId, &DutyId)| {
            duty.family() == family && self.version_on(member, duty) == version
        };
        let homes = homes.flat_map(|it| it.duties.iter().map(|duty| (&it.member, duty)));
        let named = |member: &MemberId| self.members.get(member).map(|it| it.node.clone());
        let preparing = self.basis().preparing().into_iter().filter(|(duty, (member, _))| {
            duty.family() == family && self.version_on(member, duty) == version
        });
        let serves = |it: &&incumbent_core::records::Profile| {
            let served = it.families.get(family);
            served.is_some_and(|it| version.is_none_or(|version| it.versions.contains(version)))
        };
        let nodes = self.members.values().filter(serves).map(|it| it.node.clone());
        let returned = known.into_iter().flat_map(|known| &known.returned);
        let returned = returned.filter_map(|(duty, tried)| {
            Some((DutyId::new(family, duty).ok()?, tried.get(version?)?.clone()))
        });
        VersionStanding {
            version: version.map(ToOwned::to_owned),
            nodes: nodes.collect::<BTreeSet<_>>().into_iter().collect(),
            duties: homes.filter(runs).count(),
            preparing: preparing.filter_map(|(duty, (it, _))| Some((duty, named(&it)?))).collect(),
            returned: returned.collect(),
            aborted: known.and_then(|it| it.aborted.get(version?)).cloned(),
            promoted: known.is_some_and(|it| it.promoted.iter().any(|it| Some(&**it) == version)),
        }
    }

    fn state_of(&self, standing: &RolloutStanding) -> RolloutState {
        let Some(newest) = standing.versions.first() else { return RolloutState::Settled };
        let held = |ask: &Ask| matches!(ask, Ask::Hold { family } if *family == standing.family);
        if let Some(why) = &newest.aborted {
            return RolloutState::Aborted(why.clone());
        }
        if newest.duties >= standing.listed {
            return RolloutState::Settled;
        }
        if self.asks().any(held) {
            return RolloutState::Held;
        }
        if !newest.preparing.is_empty() {
            return RolloutState::Moving;
        }
        if let Some((_, why)) = newest.returned.first_key_value() {
            return RolloutState::Returned(why.clone());
        }
        if standing.trial.is_some() {
            return RolloutState::OnTrial;
        }
        let survey = self.basis().survey(incumbent_planner::Policy::default());
        let planned = self.answer(&survey).plan;
        let deployed =
            |step: &incumbent_planner::PlanMove| step.why == incumbent_planner::Why::Deployed;
        if planned.moves.iter().any(deployed) { RolloutState::Moving } else { RolloutState::NoRoom }
    }

    /// Which version a duty runs, which is the newest and why, and what keeps it from that.
    pub(super) fn version_lines(&self, duty: &DutyId) -> Vec<String> {
        let (Some(specs), Some(lineage)) =
            (self.duties.get(duty), self.lineages.get(duty.family()))
        else {
            return Vec::new();
        };
        let member = self.holder(duty).map(|(member, _)| member).or_else(|| self.wanted_on(duty));
        let runs = member.and_then(|member| self.version_on(member, duty));
        let mut lines = Vec::new();
        if let Some(runs) = runs {
            lines.push(format!("it runs as version {runs}"));
        }
        let newest = specs.keys().flatten().max_by_key(|version| lineage.rank(Some(version)));
        if let Some(newest) = newest.filter(|_| specs.len() > 1) {
            lines.push(format!("the newest version is {newest}, {}", lineage.basis()));
        }
        let known = self.rollout.as_ref().and_then(|it| it.families.get(duty.family()));
        for version in specs.keys().flatten() {
            if let Some(why) = known.and_then(|known| known.against(duty.name(), version)) {
                lines.push(format!("it isn't to run version {version}: {why}"));
            }
        }
        if let Some((member, prepared)) = self.basis().preparing().get(duty) {
            let node = self.members.get(member).map_or("?", |profile| profile.node.as_str());
            let how = if *prepared { "is prepared" } else { "prepares" };
            lines.push(format!("{node} {how} for it"));
        }
        lines
    }
}

impl RolloutState {
    /// The word that people use.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Held => "held",
            Self::Aborted(_) => "aborted",
            Self::OnTrial => "on trial",
            Self::Returned(_) => "returned",
            Self::Moving => "moving",
            Self::NoRoom => "no room",
        }
    }
}

impl fmt::Display for RolloutState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("all duties run the newest version that they should"),
            Self::Held => f.write_str("an operator holds it"),
            Self::Aborted(why) => write!(f, "the newest version was given up: {why}"),
            Self::OnTrial => f.write_str("some duties try the newest version before the rest"),
            Self::Returned(why) => write!(f, "duties came back from the newest version: {why}"),
            Self::Moving => f.write_str("duties change over to the newest version"),
            Self::NoRoom => f.write_str("the nodes of the newest version have no room for more"),
        }
    }
}
