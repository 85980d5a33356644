use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::duty::DutyId;
use incumbent_core::keys;
use incumbent_core::names::MemberId;
use incumbent_core::records::{Content, Extra, FORMAT, fit, size};
use incumbent_core::store::Key;

/// What a report takes beside its lists.
const OVERHEAD: usize = 400;

/// How a member is doing with its roster: all of it runs, but for what is listed here. So the
/// report of a node on which all is well is tiny, however much it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Report {
    /// The format number.
    pub format: u32,
    /// The member that it is about.
    pub member: MemberId,
    /// Grows with every change.
    pub revision: u64,
    /// The revision of the roster that it is about.
    pub roster: u64,
    /// Wanted, and the lease isn't held yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub waiting: BTreeSet<DutyId>,
    /// The lease is held, and the duty has not started yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub starting: BTreeSet<DutyId>,
    /// No longer wanted, and the lease is still held.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub draining: BTreeSet<DutyId>,
    /// Ended by an error and to be started again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failing: BTreeMap<DutyId, Failing>,
    /// Ended for good: nothing is left to do.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub done: BTreeSet<DutyId>,
    /// Duties that run elsewhere, and could start here at once.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prepared: BTreeSet<DutyId>,
    /// Duties that can't be prepared for here, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unprepared: BTreeMap<DutyId, String>,
    /// Load that isn't in the duties' weights, in the same unit.
    #[serde(default)]
    pub load: u64,
    /// What duties say about themselves, for people.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub progress: BTreeMap<DutyId, String>,
    /// How many entries of the lists above are left out, because the store takes no more: of a
    /// duty that isn't listed nothing is known then.
    #[serde(default, skip_serializing_if = "incumbent_core::records::is_zero")]
    pub more: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A duty that doesn't stay up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failing {
    /// How often in a row.
    pub times: u32,
    /// The last error.
    pub error: String,
    /// This node has given up, and another shall try.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
}

impl Report {
    /// The report of a member that has read no roster.
    #[must_use]
    pub fn empty(member: MemberId) -> Self {
        Self {
            format: FORMAT,
            member,
            revision: 0,
            roster: 0,
            waiting: BTreeSet::new(),
            starting: BTreeSet::new(),
            draining: BTreeSet::new(),
            failing: BTreeMap::new(),
            done: BTreeSet::new(),
            prepared: BTreeSet::new(),
            unprepared: BTreeMap::new(),
            load: 0,
            progress: BTreeMap::new(),
            more: 0,
            extra: Extra::new(),
        }
    }

    /// Whether a report that is cut still shows that its member has held the duty's lease.
    #[must_use]
    pub fn shows_held(&self, duty: &DutyId) -> bool {
        self.starting.contains(duty)
            || self.draining.contains(duty)
            || self.failing.contains_key(duty)
            || self.done.contains(duty)
            || self.progress.contains_key(duty)
    }

    /// Leaves out what would make the record larger than the store takes, what matters least
    /// first.
    pub fn cut(&mut self, max_value: usize) {
        if size(self) <= max_value {
            return;
        }
        let mut room = max_value.saturating_sub(OVERHEAD);
        self.more = 0;
        let failing = std::mem::take(&mut self.failing);
        let (gave_up, failing): (Vec<_>, Vec<_>) =
            failing.into_iter().partition(|(_, failing)| failing.gave_up);
        let (failing, more) = fit(&mut room, gave_up.into_iter().chain(failing), size);
        self.failing = failing.into_iter().collect();
        self.more += more;
        let (kept, more) = fit(&mut room, std::mem::take(&mut self.unprepared), size);
        self.unprepared = kept.into_iter().collect();
        self.more += more;
        let lists = [
            &mut self.draining,
            &mut self.starting,
            &mut self.waiting,
            &mut self.prepared,
            &mut self.done,
        ];
        for list in lists {
            let (kept, more) = fit(&mut room, std::mem::take(list), size);
            *list = kept.into_iter().collect();
            self.more += more;
        }
        let (progress, more) = fit(&mut room, std::mem::take(&mut self.progress), size);
        self.progress = progress.into_iter().collect();
        self.more += more;
    }
}

impl Content for Report {
    fn format(&self) -> u32 {
        self.format
    }

    fn place(&self) -> Option<Key> {
        Some(keys::report(&self.member))
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
