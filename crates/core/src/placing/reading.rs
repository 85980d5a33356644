//! What the leader reads for placing, and what became of its writes.

use std::time::Duration;

use super::{Loading, Placing, Stage, Step, Subject};
use crate::duty::DutyId;
use crate::keys;
use crate::leader::{Leader, Stored, see};
use crate::mutant::{Mutant, Planted};
use crate::names::{LeaseName, MemberId};
use crate::records::{Catalog, Content, LeaseRecord, MemberRecord, Report, Roster};
use crate::store::{ErrorKind, Found, Key, Outcome, Read, Record, Reply};
use crate::time::Moment;

/// How soon something is asked for again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

impl Placing {
    /// What has to be read before the next plan, if anything.
    pub(super) fn reads(&mut self, now: Moment, leader: &Leader) -> Option<Step> {
        let key = |key| Read::Key { key, unless: None };
        let mut reads = Vec::new();
        let ask = |id: &&MemberId| self.may_ask(&keys::roster(id), now);
        reads.extend(self.doubtful.iter().filter(ask).map(|id| key(keys::roster(id))));
        if self.moves_doubtful && self.may_ask(&keys::moves(), now) {
            reads.push(key(keys::moves()));
        }
        for (id, record, profile) in leader.living() {
            if self.is_behind(id, record) && self.may_ask(&keys::report(id), now) {
                reads.push(key(keys::report(id)));
            }
            for hash in profile.families.values().flat_map(|family| &family.catalogs) {
                let read = key(keys::catalog(hash));
                if !self.catalogs.contains_key(hash)
                    && self.may_ask(&keys::catalog(hash), now)
                    && !reads.contains(&read)
                {
                    reads.push(read);
                }
            }
        }
        if reads.is_empty() {
            return None;
        }
        self.asked_at.retain(|_, at| now < *at + AGAIN);
        self.asked_at.extend(reads.iter().filter_map(|read| match read {
            Read::Key { key, .. } => Some((key.clone(), now)),
            Read::Prefix(_) => None,
        }));
        self.stage = Stage::Reading(Loading::Some);
        self.asked.clone_from(&reads);
        Some(Step::Read(reads))
    }

    /// Whether a member said that it has a newer report than the one that was read.
    pub(super) fn is_behind(&self, id: &MemberId, record: &MemberRecord) -> bool {
        record.report > self.reports.get(id).map_or(0, |report| report.revision)
    }

    /// Nothing is asked again at once, whatever the last answer was.
    fn may_ask(&self, key: &Key, now: Moment) -> bool {
        self.asked_at.get(key).is_none_or(|at| now >= *at + AGAIN)
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
                        self.absent.insert(hash.to_owned());
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
        let asked = |key: &Key| {
            asked.iter().any(|read| matches!(read, Read::Key { key: asked, .. } if asked == key))
        };
        self.moves_doubtful &= !asked(&keys::moves());
        let read: Vec<MemberId> = match loading {
            Loading::All => self.rosters.keys().cloned().collect(),
            Loading::Some => {
                self.doubtful.iter().filter(|id| asked(&keys::roster(id))).cloned().collect()
            }
        };
        for id in read {
            self.doubtful.remove(&id);
            self.await_roster(now, &id);
        }
        if loading == Loading::All {
            self.changed = now;
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
            // What the leader before found out about sick nodes is true for this one.
            let avoided = self.moves.content.iter().flat_map(|moves| moves.avoided.clone());
            for (duty, members) in avoided.collect::<Vec<_>>() {
                members.iter().for_each(|member| self.avoid(&duty, member, now));
            }
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
        if content.as_ref().is_some_and(|roster| roster.term > self.term) {
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

    /// Of a roster that was read it isn't known since when its assignments wait.
    fn await_roster(&mut self, now: Moment, id: &MemberId) {
        let Some(roster) = self.rosters.get(id).and_then(|stored| stored.content.as_ref()) else {
            return;
        };
        let report = self.reports.get(id);
        let current = report.is_some_and(|report| report.roster == roster.revision);
        for duty in &roster.duties {
            let open =
                |report: &Report| report.waiting.contains(duty) || report.starting.contains(duty);
            if !current || report.is_some_and(open) {
                let new = (now, roster.revision);
                self.pending.entry((id.clone(), duty.clone())).or_insert(new);
            }
        }
    }

    fn observe_report(&mut self, now: Moment, report: Report, planted: Planted) {
        let id = report.member.clone();
        // A report is mostly about an older roster than the last; it speaks of what was in both.
        self.pending.retain(|(member, duty), (_, revision)| {
            *member != id
                || report.roster < *revision
                || report.waiting.contains(duty)
                || report.starting.contains(duty)
        });
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
                self.unsettled.remove(id);
                if let Some(roster) = self.writing.remove(id) {
                    let version = Some(version.clone());
                    self.rosters.insert(id.clone(), Stored { content: Some(roster), version });
                }
            }
            (Subject::Roster(id), other) => {
                if other == Err(ErrorKind::Unknown) {
                    self.unsettled.insert(id.clone());
                }
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
