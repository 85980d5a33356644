//! What the leader reads for placing, and what became of its writes.

use std::time::Duration;

use super::{Loading, Placing, Stage, Step, Subject, roster_key};
use crate::duty::DutyId;
use crate::keys;
use crate::leader::{Leader, Stored, see};
use crate::mutant::{Mutant, Planted};
use crate::names::{LeaseName, MemberId};
use crate::records::{Catalog, Content, LeaseRecord, Report, Roster};
use crate::store::{ErrorKind, Found, Outcome, Read, Record, Reply};
use crate::time::Moment;

impl Placing {
    /// What has to be read before the next plan, if anything.
    pub(super) fn reads(&mut self, now: Moment, leader: &Leader) -> Option<Step> {
        let key = |key| Read::Key { key, unless: None };
        let mut reads = Vec::new();
        reads.extend(self.doubtful.iter().map(|id| key(roster_key(id))));
        if self.moves_doubtful {
            reads.push(key(keys::moves()));
        }
        for (id, record, profile) in leader.living() {
            let known = self.reports.get(id).map_or(0, |report| report.revision);
            if record.report > known {
                reads.push(key(keys::report(id)));
            }
            for hash in profile.families.values().flat_map(|family| &family.catalogs) {
                let absent = self.absent.get(hash).is_some_and(|again| now < *again);
                let read = key(keys::catalog(hash));
                if !self.catalogs.contains_key(hash) && !absent && !reads.contains(&read) {
                    reads.push(read);
                }
            }
        }
        if reads.is_empty() {
            return None;
        }
        self.stage = Stage::Reading(Loading::Some);
        self.asked.clone_from(&reads);
        Some(Step::Read(reads))
    }

    /// All that a new leader reads.
    pub(super) fn load(&mut self) -> Step {
        self.stage = Stage::Reading(Loading::All);
        Step::Read(vec![
            Read::Prefix(keys::rosters()),
            Read::Prefix(keys::reports()),
            Read::Prefix(keys::duty_leases()),
            Read::Key { key: keys::moves(), unless: None },
        ])
    }

    pub(crate) fn was_read(
        &mut self,
        now: Moment,
        answer: Result<&Reply, ErrorKind>,
        planted: Planted,
    ) {
        let Stage::Reading(loading) = self.stage else { return };
        let Ok(reply) = answer else {
            self.stage = if loading == Loading::All { Stage::Asleep } else { Stage::Idle };
            self.next = now + Duration::from_millis(500);
            return;
        };
        self.stage = Stage::Idle;
        self.dirty = true;
        let asked = std::mem::take(&mut self.asked);
        for (at, found) in reply.reads.iter().enumerate() {
            match found {
                Found::Absent => {
                    if let Some(Read::Key { key, .. }) = asked.get(at)
                        && let Some(hash) = key.as_str().strip_prefix("catalog/")
                    {
                        self.absent.insert(hash.to_owned(), now + Duration::from_secs(1));
                    }
                }
                Found::Records(records) => {
                    for stored in records {
                        self.observe(now, stored, planted);
                    }
                }
                Found::Record(stored) => self.observe(now, stored, planted),
                Found::Unchanged => {}
            }
        }
        self.moves_doubtful = false;
        self.doubtful.clear();
        if loading == Loading::All {
            self.changed = now;
            self.await_all(now);
        }
    }

    fn observe(&mut self, now: Moment, stored: &Record, planted: Planted) {
        let key = stored.key.as_str();
        if key.starts_with("roster/") {
            self.observe_roster(stored, planted);
        } else if key.starts_with("report/") {
            if let Ok(report) = Report::read(stored) {
                self.observe_report(now, report, planted);
            }
        } else if key.starts_with("catalog/") {
            if let Ok(catalog) = Catalog::read(stored) {
                let hash = key.trim_start_matches("catalog/").to_owned();
                self.absent.remove(&hash);
                self.catalogs.insert(hash, catalog);
            }
        } else if key == "moves" {
            see(&mut self.moves, Some(&Found::Record(stored.clone())));
        } else if let Ok(lease) = LeaseRecord::read(stored)
            && let Some(duty) = DutyId::of(&LeaseName::reserved(&lease.name))
            && let Some(holder) = lease.holder
            && !planted.is(Mutant::RostersForgotten)
        {
            self.holders.insert(duty, holder.member);
        }
    }

    fn observe_roster(&mut self, stored: &Record, planted: Planted) {
        // A roster that can't be read is written anew: it is advice, and ours to give.
        let mut content = Roster::read(stored).ok();
        if content.as_ref().is_some_and(|roster| roster.term > self.term)
            && !planted.is(Mutant::StaleLeaderOverwrites)
        {
            self.stage = Stage::Superseded;
        }
        let Some(id) = stored.key.as_str().strip_prefix("roster/").map(MemberId::new) else {
            return;
        };
        if planted.is(Mutant::RostersForgotten)
            && let Some(roster) = &mut content
        {
            roster.duties.clear();
        }
        self.rosters.insert(id, Stored { content, version: Some(stored.version.clone()) });
    }

    /// After an election it isn't known since when assignments wait.
    fn await_all(&mut self, now: Moment) {
        for (id, roster) in &self.rosters {
            let Some(roster) = &roster.content else { continue };
            let report = self.reports.get(id);
            let current = report.is_some_and(|report| report.roster == roster.revision);
            for duty in &roster.duties {
                let open = |report: &Report| {
                    report.waiting.contains(duty) || report.starting.contains(duty)
                };
                if !current || report.is_some_and(open) {
                    self.pending.insert(duty.clone(), (id.clone(), now));
                }
            }
        }
    }

    fn observe_report(&mut self, now: Moment, report: Report, planted: Planted) {
        let id = report.member.clone();
        let current = self
            .rosters
            .get(&id)
            .and_then(|roster| roster.content.as_ref())
            .is_some_and(|roster| roster.revision == report.roster);
        if current {
            self.pending.retain(|duty, (member, _)| {
                *member != id || report.waiting.contains(duty) || report.starting.contains(duty)
            });
        }
        self.draining.retain(|(member, duty), _| *member != id || report.draining.contains(duty));
        for duty in &report.draining {
            self.draining.entry((id.clone(), duty.clone())).or_insert(now);
        }
        let sick = report.failing.iter().filter(|(_, failing)| failing.gave_up);
        for (duty, _) in sick.filter(|_| !planted.is(Mutant::FailingStays)) {
            self.avoid(duty, &id, now);
        }
        self.reports.insert(id, report);
    }

    /// A duty avoids a member for a while, from now on.
    pub(super) fn avoid(&mut self, duty: &DutyId, member: &MemberId, now: Moment) {
        let until = now + Duration::from_secs(300);
        self.avoided.entry(duty.clone()).or_default().insert(member.clone(), until);
    }

    pub(crate) fn wrote(
        &mut self,
        now: Moment,
        subject: &Subject,
        outcome: Result<&Outcome, ErrorKind>,
    ) {
        match (subject, outcome) {
            (Subject::Aside, _) => {}
            (Subject::Roster(id), Ok(Outcome::Applied(version))) => {
                if let Some(roster) = self.writing.remove(id) {
                    let version = Some(version.clone());
                    self.rosters.insert(id.clone(), Stored { content: Some(roster), version });
                }
            }
            (Subject::Roster(id), _) => {
                self.writing.remove(id);
                self.doubtful.insert(id.clone());
                self.next = now + Duration::from_millis(200);
            }
            (Subject::Moves, Ok(Outcome::Applied(version))) => {
                let version = Some(version.clone());
                self.moves = Stored { content: self.writing_moves.take(), version };
            }
            (Subject::Moves, _) => {
                self.writing_moves = None;
                self.moves_doubtful = true;
                self.next = now + Duration::from_millis(200);
            }
        }
    }
}
