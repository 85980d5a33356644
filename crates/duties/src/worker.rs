//! What a member runs for the cluster: the families it serves, its roster and its report.
//!
//! ```text
//!  the leader's roster        this member              its report says
//!  ─────────────────────      ──────────────────       ───────────────────────────────
//!  preparing: d          ──▶  prepares                 prepared, or unprepared and why
//!  duties: d             ──▶  contends for the lease   waiting
//!                             elected: starts          starting
//!                             runs                     nothing: all is well
//!                             ended by an error        failing, and whether it gave up
//!                             ended                    done
//!  d isn't there any more ─▶  stops, frees the lease   draining, until it is freed
//! ```
//!
//! The lease decides at every line; the roster only asks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::duty::DutyId;
use crate::records::{Catalog, DutySpec, Failing, Report, Roster};
use incumbent_core::Moment;
use incumbent_core::names::MemberId;
use incumbent_core::own::OwnRecord;
use incumbent_core::records::{Content, FamilyProfile};
use incumbent_core::settings::Timing;
use incumbent_core::store::Version;

/// How a duty that was elected here gets on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DutyStatus {
    /// It runs.
    Active,
    /// It ended by an error, and is started again after a while.
    Failing {
        /// How often in a row.
        times: u32,
        /// The last error.
        error: String,
        /// Another node shall try.
        gave_up: bool,
    },
    /// It ended, and there is nothing left to do.
    Done,
}

/// How far a member is with what a duty needs before it can start here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Preparation {
    Underway,
    Done,
    Failed(String),
}

/// What a new roster changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// Wanted now, and wasn't before; and who held its lease before.
    pub(crate) new: Vec<(DutyId, Option<MemberId>)>,
    /// Was wanted, and isn't; and for whom its lease is freed.
    pub(crate) gone: Vec<(DutyId, Option<MemberId>)>,
    /// To be prepared for.
    pub(crate) prepare: Vec<DutyId>,
    /// Neither wanted nor to be prepared for any more.
    pub(crate) forget: Vec<DutyId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) families: BTreeMap<String, FamilyProfile>,
    /// This incarnation has served a family, so that it may still have duties to let go of.
    served: bool,
    /// Catalogs to be there before the profile names them.
    pub(crate) catalogs: BTreeMap<String, Posting>,
    /// The roster as it was last read.
    pub(crate) version: Option<Version>,
    term: u64,
    revision: u64,
    pub(crate) wanted: BTreeSet<DutyId>,
    /// Duties that run elsewhere until this node is prepared for them.
    preparing: BTreeMap<DutyId, Preparation>,
    pub(crate) statuses: BTreeMap<DutyId, DutyStatus>,
    pub(crate) load: u64,
    pub(crate) progress: BTreeMap<DutyId, String>,
    pub(crate) report: OwnRecord,
    /// The last report that was made.
    made: Option<Report>,
    /// When to look whether there is something new to report: at most once a beat.
    due: Moment,
    last: Moment,
    beat: Duration,
}

/// A catalog on its way to the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Posting {
    pub(crate) content: Vec<u8>,
    pub(crate) stage: PostingStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PostingStage {
    Due(Moment),
    Sending,
    There,
}

impl Worker {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self {
            families: BTreeMap::new(),
            served: false,
            catalogs: BTreeMap::new(),
            version: None,
            term: 0,
            revision: 0,
            wanted: BTreeSet::new(),
            preparing: BTreeMap::new(),
            statuses: BTreeMap::new(),
            load: 0,
            progress: BTreeMap::new(),
            report: OwnRecord::new(timing),
            made: None,
            due: Moment::NEVER,
            last: Moment::START,
            beat: timing.beat,
        }
    }

    /// Forgets what belonged to an incarnation; what the node serves stays.
    pub(crate) fn end(&mut self, timing: &Timing, now: Moment) {
        let families = std::mem::take(&mut self.families);
        let mut catalogs = std::mem::take(&mut self.catalogs);
        for listing in catalogs.values_mut() {
            listing.stage = PostingStage::Due(now);
        }
        *self = Self { families, catalogs, load: self.load, ..Self::new(timing) };
    }

    pub(crate) fn serves(&self) -> bool {
        self.served || !self.families.is_empty()
    }

    /// Sets what this node knows of a family.
    pub(crate) fn serve(
        &mut self,
        now: Moment,
        family: &str,
        mut profile: FamilyProfile,
        duties: &[DutySpec],
        max_value: usize,
    ) {
        self.served = true;
        profile.catalogs.clear();
        for catalog in Catalog::of(family, duties, max_value) {
            let hash = catalog.hash();
            let stage = PostingStage::Due(now);
            let listing = Posting { content: catalog.bytes(), stage };
            self.catalogs.entry(hash.clone()).or_insert(listing);
            profile.catalogs.push(hash);
        }
        self.families.insert(family.to_owned(), profile);
        self.forget_catalogs();
    }

    pub(crate) fn unserve(&mut self, family: &str) {
        self.families.remove(family);
        self.forget_catalogs();
    }

    fn forget_catalogs(&mut self) {
        let families = &self.families;
        let named = |hash: &String| families.values().any(|family| family.catalogs.contains(hash));
        self.catalogs.retain(|hash, _| named(hash));
    }

    /// Whether the profile may name all catalogs.
    pub(crate) fn is_listed(&self) -> bool {
        self.catalogs.values().all(|listing| listing.stage == PostingStage::There)
    }

    /// The catalogs are to be written again, because some are gone.
    pub(crate) fn list_again(&mut self, now: Moment) {
        for listing in self.catalogs.values_mut() {
            listing.stage = PostingStage::Due(now);
        }
    }

    pub(crate) fn listings_due(&self, now: Moment) -> Vec<String> {
        let due = |listing: &Posting| matches!(listing.stage, PostingStage::Due(at) if now >= at);
        self.catalogs
            .iter()
            .filter(|(_, listing)| due(listing))
            .map(|(hash, _)| hash.clone())
            .collect()
    }

    pub(crate) fn wake_at(&self) -> Moment {
        let listing = |listing: &Posting| match listing.stage {
            PostingStage::Due(at) => Some(at),
            PostingStage::Sending | PostingStage::There => None,
        };
        let listing = self.catalogs.values().filter_map(listing).min().unwrap_or(Moment::NEVER);
        listing.min(self.due).min(self.report.wake_at())
    }

    /// Takes in a roster; says what it changes.
    pub(crate) fn obey(&mut self, mut roster: Roster) -> Orders {
        if roster.term < self.term {
            return Orders::default();
        }
        self.term = roster.term;
        self.revision = roster.revision;
        let new = roster.duties.difference(&self.wanted);
        let new = new.map(|duty| (duty.clone(), roster.former.remove(duty))).collect();
        let gone = self.wanted.difference(&roster.duties);
        let gone = gone.map(|duty| (duty.clone(), roster.successors.remove(duty))).collect();
        let former = std::mem::take(&mut self.preparing);
        let forget =
            |duty: &&DutyId| !roster.preparing.contains(*duty) && !roster.duties.contains(*duty);
        let forget = former.keys().filter(forget).cloned().collect();
        let prepare = |duty: &&DutyId| !former.contains_key(*duty);
        let prepare = roster.preparing.iter().filter(prepare).cloned().collect();
        for duty in roster.preparing {
            let preparation = former.get(&duty).cloned().unwrap_or(Preparation::Underway);
            self.preparing.insert(duty, preparation);
        }
        self.wanted = roster.duties;
        Orders { new, gone, prepare, forget }
    }

    /// Notes how preparing for a duty ended; says whether that is news.
    pub(crate) fn prepared(&mut self, duty: &DutyId, result: Result<(), String>) -> bool {
        let Some(preparation) = self.preparing.get_mut(duty) else { return false };
        *preparation = match result {
            Ok(()) => Preparation::Done,
            Err(error) => Preparation::Failed(error),
        };
        true
    }

    /// There may be something to report: soon, and at most once a beat.
    pub(crate) fn changed(&mut self, now: Moment) {
        if self.due == Moment::NEVER && self.serves() {
            self.due = (now + self.beat / 10).max(self.last + self.beat);
        }
    }

    /// Whether it is time to make a report; asked once.
    pub(crate) fn take_due(&mut self, now: Moment) -> bool {
        let due = now >= self.due;
        if due {
            self.due = Moment::NEVER;
        }
        due
    }

    /// A report with what doesn't depend on leases.
    pub(crate) fn draft(&self, member: MemberId) -> Report {
        let mut report = Report::empty(member);
        report.revision = self.made.as_ref().map_or(0, |made| made.revision);
        report.roster = self.revision;
        report.load = self.load;
        report.progress.clone_from(&self.progress);
        for (duty, preparation) in &self.preparing {
            match preparation {
                Preparation::Underway => {}
                Preparation::Done => {
                    report.prepared.insert(duty.clone());
                }
                Preparation::Failed(error) => {
                    report.unprepared.insert(duty.clone(), error.clone());
                }
            }
        }
        for (duty, status) in &self.statuses {
            match status {
                DutyStatus::Active => {}
                DutyStatus::Done => {
                    report.done.insert(duty.clone());
                }
                DutyStatus::Failing { times, error, gave_up } => {
                    let (times, error, gave_up) = (*times, error.clone(), *gave_up);
                    report.failing.insert(duty.clone(), Failing { times, error, gave_up });
                }
            }
        }
        report
    }

    /// Has a report written if it says something new.
    pub(crate) fn publish(&mut self, now: Moment, mut report: Report) {
        if self.made.as_ref() == Some(&report) {
            return;
        }
        report.revision += 1;
        self.report.want(report.bytes());
        self.made = Some(report);
        self.last = now;
    }

    /// How often the report changed, once the store has it.
    pub(crate) fn reported(&self) -> Option<u64> {
        self.made.as_ref().filter(|_| self.report.is_settled()).map(|made| made.revision)
    }
}
