//! How the leader of the cluster spreads duties: it reads what members know, want and report,
//! asks the planner, and writes rosters.
//!
//! Nothing here decides that a duty runs: the lease does. All of it can be lost with the leader;
//! the next one reads rosters, reports and the leases of duties, and goes on from there.

mod plan;
mod reading;

pub(crate) use plan::Round;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use incumbent_planner as planner;

use crate::duty::DutyId;
use crate::leader::{Stored, Wanted};
use crate::names::MemberId;
use crate::records::{Catalog, DutySpec, Moves, Report, Roster};
use crate::store::{Key, Read};
use crate::time::Moment;

/// How a leader places duties.
#[derive(Clone, Debug)]
pub struct Placement {
    /// How the planner chooses.
    pub strategy: planner::Strategy,
    /// Families with a placement of their own.
    pub families: BTreeMap<String, std::sync::Arc<dyn planner::Place>>,
    /// Nothing moves for the sake of evenness before members and duties were the same for so
    /// long; without it a ttl.
    pub quiet: Option<Duration>,
    /// How many duties move for the sake of evenness at once; without it 1,000, or a tenth of all
    /// duties where that is more.
    pub per_round: Option<usize>,
    /// And how many of them leave or reach one node; without it 100, or a tenth of all duties.
    pub per_node: Option<usize>,
}

impl Default for Placement {
    fn default() -> Self {
        Self {
            strategy: planner::Strategy::Even,
            families: BTreeMap::new(),
            quiet: None,
            per_round: None,
            per_node: None,
        }
    }
}

impl Placement {
    /// How much may move for the sake of evenness: large fleets move more at once, or the first
    /// node of a fleet that starts would keep what it got for minutes.
    fn limits(&self, duties: usize) -> planner::Rebalance {
        planner::Rebalance::UpTo {
            per_round: self.per_round.unwrap_or((duties / 10).max(1_000)),
            per_node: self.per_node.unwrap_or((duties / 10).max(100)),
        }
    }
}

// Strategies are code; the model checker tells them apart by how they print.
impl PartialEq for Placement {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Eq for Placement {}

impl Hash for Placement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{self:?}").hash(state);
    }
}

/// What of the leader's placing a request was about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Roster(MemberId),
    Moves,
    /// An eviction, an intent that was obeyed, or a list nobody needs: what became of it shows by
    /// itself.
    Aside,
}

/// What the leader wants done about duties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Read(Vec<Read>),
    Write(Vec<(Subject, Wanted)>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Placing {
    term: u64,
    stage: Stage,
    rosters: BTreeMap<MemberId, Stored<Roster>>,
    /// Rosters whose last write was refused or is in doubt.
    doubtful: BTreeSet<MemberId>,
    /// Rosters of which a write may still land: a read that doesn't show it settles nothing, only a
    /// newer version does.
    unsettled: BTreeSet<MemberId>,
    /// The read on its way.
    asked: Vec<Read>,
    /// When single records were asked for.
    asked_at: BTreeMap<Key, Moment>,
    /// Rosters on their way.
    writing: BTreeMap<MemberId, Roster>,
    moves: Stored<Moves>,
    writing_moves: Option<Moves>,
    moves_doubtful: bool,
    reports: BTreeMap<MemberId, Report>,
    catalogs: BTreeMap<String, Catalog>,
    /// Lists that profiles name and the store doesn't have.
    absent: BTreeSet<String>,
    /// When a living member's profile last named a list.
    named: BTreeMap<String, Moment>,
    duties: BTreeMap<DutyId, DutySpec>,
    /// Whether a list is missing that a living member names.
    lists_missing: bool,
    /// The lists of which `duties` is made.
    duties_of: BTreeSet<String>,
    /// Who held the lease of a duty when this leader was elected.
    holders: BTreeMap<DutyId, MemberId>,
    /// Assignments that were not acknowledged yet, since when they could be, and from which
    /// revision of the roster on a report speaks of them.
    pending: BTreeMap<(MemberId, DutyId), (Moment, u64)>,
    /// Duties that don't stop, and since when.
    draining: BTreeMap<(MemberId, DutyId), Moment>,
    /// Whom a duty avoids, and until when.
    avoided: BTreeMap<DutyId, BTreeMap<MemberId, Moment>>,
    /// The leader's listing on which the last plan was based.
    generation: u64,
    members: BTreeSet<MemberId>,
    dirty: bool,
    /// When members or duties changed last.
    changed: Moment,
    rebalanced: Moment,
    /// When to plan again by itself.
    next: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Nothing was read yet: nobody serves a family.
    Asleep,
    Reading(Loading),
    Idle,
    /// A later leader has been here.
    Superseded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Loading {
    All,
    Some,
}

impl Placing {
    pub(crate) fn new(term: u64) -> Self {
        Self {
            term,
            stage: Stage::Asleep,
            rosters: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            asked: Vec::new(),
            asked_at: BTreeMap::new(),
            writing: BTreeMap::new(),
            moves: Stored::EMPTY,
            writing_moves: None,
            moves_doubtful: false,
            reports: BTreeMap::new(),
            catalogs: BTreeMap::new(),
            absent: BTreeSet::new(),
            named: BTreeMap::new(),
            duties: BTreeMap::new(),
            lists_missing: false,
            duties_of: BTreeSet::new(),
            holders: BTreeMap::new(),
            pending: BTreeMap::new(),
            draining: BTreeMap::new(),
            avoided: BTreeMap::new(),
            generation: 0,
            members: BTreeSet::new(),
            dirty: true,
            changed: Moment::START,
            rebalanced: Moment::START,
            next: Moment::NEVER,
        }
    }

    /// When there is something to do without news.
    pub(crate) fn wake_at(&self) -> Moment {
        match self.stage {
            Stage::Idle if self.is_writing() => Moment::NEVER,
            Stage::Idle => self.next,
            Stage::Asleep | Stage::Reading(_) | Stage::Superseded => Moment::NEVER,
        }
    }

    fn is_writing(&self) -> bool {
        !self.writing.is_empty() || self.writing_moves.is_some()
    }

    /// Whether a list is gone that this member's profile names.
    pub(crate) fn misses(&self, lists: &[String]) -> bool {
        lists.iter().any(|hash| self.absent.contains(hash))
    }
}
