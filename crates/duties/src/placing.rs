//! How the leader of the cluster spreads duties: it reads what members know, want and report,
//! asks the planner, and writes rosters.
//!
//! Nothing here decides that a duty runs: the lease does. All of it can be lost with the leader;
//! the next one reads the rosters and reports of living members, and goes on from there.

mod homes;
mod planning;
mod reading;
mod result;
mod rollout;
mod round;
mod setbacks;

pub use planning::{Planned, Planning, PlanningId};
pub(crate) use result::PlanFailure;
pub(crate) use round::Round;
use setbacks::Setbacks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use incumbent_planner as planner;

use crate::duty::DutyId;
use crate::records::{Catalog, Moves, Report, Rollout, Roster};
use crate::survey::Descriptions;
use incumbent_core::Moment;
use incumbent_core::leader::WantedWrite;
use incumbent_core::names::MemberId;
use incumbent_core::store::{Key, Read};
use incumbent_core::stored::Stored;

/// How a leader places duties.
#[derive(Clone, Debug)]
pub struct Placement {
    /// How the planner chooses.
    pub strategy: planner::Strategy,
    /// Families with a placement of their own.
    pub families: BTreeMap<String, Arc<dyn planner::Place>>,
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

/// What of the leader's placing a request was about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Roster(MemberId),
    Moves,
    Rollout,
    /// A list that nobody names any more.
    List(String),
    /// An eviction, or an intent that was obeyed: what became of it shows by itself.
    Aside,
}

/// What the leader wants done about duties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlacingStep {
    Read(Vec<Read>),
    Write(Vec<(Subject, WantedWrite)>),
}

pub(crate) type Writes = Vec<(Subject, WantedWrite)>;
type KnownDuties = BTreeMap<DutyId, Descriptions>;
type Avoided = BTreeMap<DutyId, BTreeMap<MemberId, Moment>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Placing {
    term: u64,
    stage: PlacingStage,
    rosters: BTreeMap<MemberId, Stored<Arc<Roster>>>,
    /// Rosters whose last write was refused or is in doubt.
    doubtful: BTreeSet<MemberId>,
    /// Rosters of which a write may still land: a read that doesn't show it settles nothing, only a
    /// newer version does.
    unsettled: BTreeSet<MemberId>,
    /// The read on its way.
    asked: Vec<Key>,
    /// How much one read may ask for.
    page: usize,
    /// When single records were asked for.
    asked_at: BTreeMap<Key, Moment>,
    /// Rosters on their way.
    writing: BTreeMap<MemberId, Arc<Roster>>,
    moves: Stored<Moves>,
    writing_moves: Option<Moves>,
    moves_doubtful: bool,
    moves_read: bool,
    /// Members whose roster was read, or wasn't there.
    acquainted: BTreeSet<MemberId>,
    /// A plan of this leader's was used.
    was_placed: bool,
    rollout: Stored<Rollout>,
    writing_rollout: Option<Rollout>,
    /// It isn't known what the store has: not read yet, or a write of ours is in doubt.
    rollout_doubtful: bool,
    /// The store has another than this leader has decided on.
    rollout_unwritten: bool,
    /// Duties that don't run where they should, and why.
    failed: BTreeMap<DutyId, (MemberId, String)>,
    /// Duties that lost their node and have no other yet, and what that one could run.
    ran: BTreeMap<DutyId, BTreeSet<String>>,
    /// Duties that lost their node and have no other yet, and who that was.
    bereft: BTreeMap<DutyId, MemberId>,
    /// Duties on rosters that were not written, and whose.
    on_the_way: BTreeMap<DutyId, MemberId>,
    /// What speaks against versions beside those.
    setbacks: Setbacks,
    /// Versions on trial, by family: since when all that run them are well, and how long they must.
    well: BTreeMap<(String, String), (Moment, Duration)>,
    /// Those that have been for long enough.
    passed: BTreeSet<(String, String)>,
    reports: BTreeMap<MemberId, Report>,
    catalogs: BTreeMap<String, Arc<Catalog>>,
    /// Lists that profiles name and the store doesn't have.
    absent: BTreeSet<String>,
    /// When a living member's profile last named a list.
    named: BTreeMap<String, Moment>,
    /// The lists that living members name, as far as they are there.
    lists: BTreeSet<String>,
    /// What the last plan knew.
    duties: Arc<KnownDuties>,
    /// Whether a list is missing that a living member names.
    lists_missing: bool,
    /// The lists of which `duties` is made.
    duties_of: Option<BTreeSet<String>>,
    /// Assignments that were not acknowledged yet, since when they could be, and from which
    /// revision of the roster on a report speaks of them.
    pending: BTreeMap<MemberId, BTreeMap<DutyId, (Moment, u64)>>,
    /// Duties that don't stop, and since when.
    draining: BTreeMap<MemberId, BTreeMap<DutyId, Moment>>,
    /// Whom a duty avoids, and until when.
    avoided: Arc<Avoided>,
    /// The plan that is being made.
    underway: Option<Underway>,
    /// How many results in a row were out of date when they came.
    dropped: u32,
    /// How many plans in a row could not be made, and when the next may be tried.
    failures: u32,
    not_before: Moment,
    /// The leader's listing that was looked at last.
    generation: u64,
    members: BTreeSet<MemberId>,
    dirty: bool,
    /// When members or duties changed last.
    changed: Moment,
    rebalanced: Moment,
    /// When to plan again by itself.
    next: Moment,
}

/// A plan that is to be made, or is being made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Underway {
    may_rebalance: bool,
    /// Once it was handed to the driver.
    id: Option<PlanningId>,
    /// What [`Leading::upsets`](incumbent_core::leader::Leading::upsets) said then.
    upsets: u64,
    /// The members that it counts on, and the revisions of their profiles.
    members: BTreeMap<MemberId, u64>,
    /// There is news of some kind: another is to be made after it.
    overtaken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PlacingStage {
    /// Nothing was read yet: nobody serves a family.
    Asleep,
    Reading,
    Idle,
    /// A leader of this later term has been here.
    Superseded(u64),
}

impl Placing {
    pub(crate) fn new(term: u64) -> Self {
        Self {
            term,
            stage: PlacingStage::Asleep,
            rosters: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            asked: Vec::new(),
            page: 64,
            asked_at: BTreeMap::new(),
            writing: BTreeMap::new(),
            moves: Stored::EMPTY,
            writing_moves: None,
            moves_doubtful: false,
            moves_read: false,
            acquainted: BTreeSet::new(),
            was_placed: false,
            rollout: Stored::EMPTY,
            writing_rollout: None,
            rollout_doubtful: true,
            rollout_unwritten: false,
            failed: BTreeMap::new(),
            ran: BTreeMap::new(),
            bereft: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            setbacks: Setbacks::default(),
            well: BTreeMap::new(),
            passed: BTreeSet::new(),
            reports: BTreeMap::new(),
            catalogs: BTreeMap::new(),
            absent: BTreeSet::new(),
            named: BTreeMap::new(),
            lists: BTreeSet::new(),
            duties: Arc::default(),
            lists_missing: false,
            duties_of: None,
            pending: BTreeMap::new(),
            draining: BTreeMap::new(),
            avoided: Arc::default(),
            underway: None,
            dropped: 0,
            failures: 0,
            not_before: Moment::START,
            generation: 0,
            members: BTreeSet::new(),
            dirty: true,
            changed: Moment::START,
            rebalanced: Moment::START,
            next: Moment::NEVER,
        }
    }

    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// The later term of a leader whose rosters are in the store.
    pub(crate) fn superseded(&self) -> Option<u64> {
        match self.stage {
            PlacingStage::Superseded(term) => Some(term),
            PlacingStage::Asleep | PlacingStage::Reading | PlacingStage::Idle => None,
        }
    }

    /// When there is something to do without news.
    pub(crate) fn wake_at(&self) -> Moment {
        match self.stage {
            PlacingStage::Idle if self.is_writing() => Moment::NEVER,
            PlacingStage::Idle => self.next,
            PlacingStage::Asleep | PlacingStage::Reading | PlacingStage::Superseded(_) => {
                Moment::NEVER
            }
        }
    }

    fn is_writing(&self) -> bool {
        !self.writing.is_empty() || self.writing_moves.is_some() || self.writing_rollout.is_some()
    }

    /// Whether any list is gone that a member names.
    pub(crate) fn misses_any(&self) -> bool {
        !self.absent.is_empty()
    }

    /// Whether a list is gone that this member's profile names.
    pub(crate) fn misses(&self, lists: &[String]) -> bool {
        lists.iter().any(|hash| self.absent.contains(hash))
    }
}

/// Duties return to whom they avoided, but for the last.
fn forgive(avoided: &mut Arc<Avoided>, forgiven: &[(DutyId, Moment)]) {
    if forgiven.is_empty() {
        return;
    }
    let avoided = Arc::make_mut(avoided);
    for (duty, last) in forgiven {
        if let Some(avoided) = avoided.get_mut(duty) {
            avoided.retain(|_, until| *until >= *last);
        }
    }
}
