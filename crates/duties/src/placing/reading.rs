//! What the leader reads for placing, and what became of its writes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Placing, PlacingStage, PlacingStep, Subject};
use crate::duty::DutyId;
use crate::records::{Catalog, Report, Rollout, Roster};
use incumbent_core::Moment;
use incumbent_core::keys::{self, Kind};
use incumbent_core::leader::Leading;
use incumbent_core::mutant::{Mutant, Planted};
use incumbent_core::names::MemberId;
use incumbent_core::pace;
use incumbent_core::records::{Content, MemberRecord, Profile};
use incumbent_core::store::{ErrorKind, Found, Key, Outcome, Read, Record, Reply};
use incumbent_core::stored::{Stored, see};

/// How soon something is asked for again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// What one request may read, in units of small records, and how that grows and shrinks: a page that
/// wasn't read in its time is tried again as two.
const LARGEST_PAGE: usize = 256;

impl Placing {
    /// What has to be read before the next plan, if anything: a page of it. All is read by key, so
    /// that what the dead left behind costs nothing.
    pub(super) fn reads(
        &mut self,
        now: Moment,
        leader: &Leading,
        planted: Planted,
    ) -> Option<PlacingStep> {
        let mut page = Page { room: self.page, keys: BTreeSet::new() };
        if !self.moves_read || self.moves_doubtful {
            page.ask(self, now, keys::moves(), 4);
        }
        for id in &self.doubtful {
            page.ask(self, now, keys::roster(id), 4);
        }
        if self.rollout_doubtful {
            page.ask(self, now, keys::rollout(), 4);
        }
        for (id, record, profile) in leader.living() {
            if self.is_unknown(id, record, profile) {
                page.ask(self, now, keys::roster(id), 4);
            }
            if self.is_behind(id, record) {
                page.ask(self, now, keys::report(id), 1);
            }
            for hash in profile.families.values().flat_map(|family| &family.catalogs) {
                if !self.catalogs.contains_key(hash) {
                    page.ask(self, now, keys::catalog(hash), 16);
                }
            }
            if page.room == 0 {
                break;
            }
        }
        if page.keys.is_empty() {
            return None;
        }
        self.asked_at.retain(|_, at| now < *at + AGAIN);
        self.asked_at.extend(page.keys.iter().map(|key| (key.clone(), now)));
        self.stage = PlacingStage::Reading;
        self.asked = page.keys.into_iter().collect();
        let read = |key: &Key| Read::Key { key: key.clone(), unless: None };
        let mut reads: Vec<Read> = self.asked.iter().map(read).collect();
        if planted.is(Mutant::OldLeasesListed) && !self.moves_read {
            reads.push(Read::Prefix(keys::duty_leases()));
        }
        Some(PlacingStep::Read(reads))
    }

    /// Whether a member may have a roster of a former leader, and it was not read yet.
    pub(super) fn is_unknown(
        &self,
        id: &MemberId,
        record: &MemberRecord,
        profile: &Profile,
    ) -> bool {
        // Who never served has none; who did has changed its profile, or has reported.
        let may_have = !profile.families.is_empty() || profile.revision > 1 || record.report > 0;
        may_have && !self.acquainted.contains(id)
    }

    /// Whether a member said that it has a newer report than the one that was read.
    pub(super) fn is_behind(&self, id: &MemberId, record: &MemberRecord) -> bool {
        record.report > self.reports.get(id).map_or(0, |report| report.revision)
    }

    /// Nothing is asked again at once, whatever the last answer was.
    fn may_ask(&self, key: &Key, now: Moment) -> bool {
        self.asked_at.get(key).is_none_or(|at| now >= *at + AGAIN)
    }

    pub(crate) fn was_read(
        &mut self,
        now: Moment,
        answer: Result<&Reply, ErrorKind>,
        planted: Planted,
    ) {
        if self.stage != PlacingStage::Reading {
            return;
        }
        self.stage = PlacingStage::Idle;
        let asked = std::mem::take(&mut self.asked);
        let Ok(reply) = answer else {
            self.page = (self.page / 2).max(1);
            self.next = now + pace::LEADER_RETRY;
            return;
        };
        self.page = (self.page * 2).min(LARGEST_PAGE);
        self.dirty = true;
        for (key, found) in asked.iter().zip(&reply.reads) {
            match found {
                Found::Record(stored) => self.observe(now, stored, planted),
                Found::Absent => {
                    match (Kind::of(key), keys::name_in(key)) {
                        (Some(Kind::Catalog), Some(hash)) => {
                            self.absent.insert(hash);
                        }
                        // A store that lost it doesn't make what this leader knows untrue.
                        (Some(Kind::Rollout), _) => self.rollout.version = None,
                        _ => {}
                    }
                }
                Found::Records(_) | Found::Unchanged => {}
            }
            match (Kind::of(key), member_of(key)) {
                (Some(Kind::Roster), Some(id)) => {
                    self.doubtful.remove(&id);
                    self.await_roster(now, &id);
                    self.acquainted.insert(id);
                }
                (Some(Kind::Moves), _) => {
                    self.moves_doubtful = false;
                    self.moves_read = true;
                }
                (Some(Kind::Rollout), _) => self.rollout_doubtful = false,
                _ => {}
            }
        }
    }

    fn observe(&mut self, now: Moment, stored: &Record, planted: Planted) {
        match Kind::of(&stored.key) {
            Some(Kind::Roster) => self.observe_roster(stored, planted),
            Some(Kind::Report) => {
                if let Ok(report) = Report::read(stored) {
                    self.observe_report(now, report, planted);
                }
            }
            Some(Kind::Catalog) => {
                if let (Ok(catalog), Some(hash)) =
                    (Catalog::read(stored), keys::name_in(&stored.key))
                {
                    self.absent.remove(&hash);
                    self.catalogs.insert(hash, Arc::new(catalog));
                }
            }
            Some(Kind::Rollout) => self.observe_rollout(stored),
            Some(Kind::Moves) => {
                see(&mut self.moves, Some(&Found::Record(stored.clone())));
                // What the leader before found out about sick nodes is true for this one.
                let avoided = self.moves.content.iter().flat_map(|moves| moves.avoided.clone());
                for (duty, members) in avoided.collect::<Vec<_>>() {
                    members.iter().for_each(|member| self.avoid(&duty, member, now));
                }
            }
            _ => {}
        }
    }

    /// What this leader has written itself counts for more than what a store gives, which may have
    /// gone back.
    fn observe_rollout(&mut self, stored: &Record) {
        let content = Rollout::read(stored).ok();
        self.heed(content.as_ref().map_or(0, |rollout| rollout.term));
        if self.rollout.content.as_ref().is_none_or(|known| known.term < self.term) {
            self.rollout.content = content;
        } else {
            self.rollout_unwritten = self.rollout.content != content;
        }
        self.rollout.version = Some(stored.version.clone());
    }

    /// A record of a later term shows that another leads.
    fn heed(&mut self, term: u64) {
        if term > self.term {
            self.stage = PlacingStage::Superseded(term.max(self.superseded().unwrap_or(0)));
        }
    }

    fn observe_roster(&mut self, stored: &Record, planted: Planted) {
        // A roster that can't be read is written anew: it is advice, and ours to give.
        let mut content = Roster::read(stored).ok();
        self.heed(content.as_ref().map_or(0, |roster| roster.term));
        let Some(id) = member_of(&stored.key) else { return };
        if planted.is(Mutant::RostersForgotten)
            && let Some(roster) = &mut content
        {
            roster.duties.clear();
        }
        let content = content.map(Arc::new);
        let roster = Stored { content, version: Some(stored.version.clone()) };
        self.rosters.insert(id.clone(), roster);
        self.settle(&id);
    }

    /// What is on a roster that the store has isn't without a node any more. Until then it is not
    /// forgotten what it ran as, and where.
    fn settle(&mut self, id: &MemberId) {
        let roster = self.rosters.get(id).and_then(|stored| stored.content.as_ref());
        let Some(roster) = roster else { return };
        self.ran.retain(|duty, _| !roster.duties.contains(duty));
        self.bereft.retain(|duty, _| !roster.duties.contains(duty));
    }

    /// Of a roster that was read it isn't known since when its assignments wait.
    fn await_roster(&mut self, now: Moment, id: &MemberId) {
        let Some(roster) = self.rosters.get(id).and_then(|stored| stored.content.as_ref()) else {
            return;
        };
        let report = self.reports.get(id);
        let current = report.is_some_and(|report| report.roster == roster.revision);
        let pending = self.pending.entry(id.clone()).or_default();
        for duty in &roster.duties {
            let open =
                |report: &Report| report.waiting.contains(duty) || report.starting.contains(duty);
            if !current || report.is_some_and(open) {
                pending.entry(duty.clone()).or_insert((now, roster.revision));
            }
        }
    }

    fn observe_report(&mut self, now: Moment, report: Report, planted: Planted) {
        let id = report.member.clone();
        // A report is mostly about an older roster than the last; it speaks of what was in both.
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.retain(|duty, (since, revision)| {
                let listed = report.waiting.contains(duty) || report.starting.contains(duty);
                if report.more > 0 && !listed {
                    // Nothing is known of it: its time begins when something is.
                    *since = now;
                    return true;
                }
                report.roster < *revision
                    || report.waiting.contains(duty)
                    || report.starting.contains(duty)
            });
        }
        let draining = self.draining.entry(id.clone()).or_default();
        draining.retain(|duty, _| report.draining.contains(duty));
        for duty in &report.draining {
            draining.entry(duty.clone()).or_insert(now);
        }
        self.observe_failures(&report);
        let sick = report.failing.iter().filter(|(_, failing)| failing.gave_up);
        for (duty, _) in sick.filter(|_| !planted.is(Mutant::FailingStays)) {
            self.avoid(duty, &id, now);
        }
        self.reports.insert(id, report);
    }

    /// A duty avoids a member for a while, from now on.
    pub(super) fn avoid(&mut self, duty: &DutyId, member: &MemberId, now: Moment) {
        let until = now + Duration::from_secs(300);
        let avoided = Arc::make_mut(&mut self.avoided);
        avoided.entry(duty.clone()).or_default().insert(member.clone(), until);
    }

    pub(crate) fn wrote(
        &mut self,
        now: Moment,
        subject: &Subject,
        outcome: Result<&Outcome, ErrorKind>,
    ) {
        match (subject, outcome) {
            (Subject::Aside, _) | (Subject::List(_), Err(_)) => {}
            (Subject::List(hash), Ok(_)) => {
                self.named.remove(hash);
                self.catalogs.remove(hash);
            }
            (Subject::Roster(id), Ok(Outcome::Applied(version))) => {
                self.unsettled.remove(id);
                if let Some(roster) = self.writing.remove(id) {
                    let version = Some(version.clone());
                    self.rosters.insert(id.clone(), Stored { content: Some(roster), version });
                }
                self.settle(id);
            }
            (Subject::Roster(id), other) => {
                if other == Err(ErrorKind::Unknown) {
                    self.unsettled.insert(id.clone());
                }
                if let Some(roster) = self.writing.remove(id) {
                    self.not_written(id, &roster);
                }
                self.doubtful.insert(id.clone());
                self.next = now + pace::LEADER_CONFLICT;
            }
            (Subject::Rollout, Ok(Outcome::Applied(version))) => {
                let version = Some(version.clone());
                if let Some(rollout) = &self.writing_rollout {
                    self.setbacks.noted(rollout);
                }
                self.rollout = Stored { content: self.writing_rollout.take(), version };
                self.rollout_unwritten = false;
            }
            (Subject::Rollout, _) => {
                // Rosters of the same plan may be in the store: what it decided stays decided.
                self.rollout.content = self.writing_rollout.take();
                self.rollout_doubtful = true;
                self.next = now + pace::LEADER_CONFLICT;
            }
            (Subject::Moves, Ok(Outcome::Applied(version))) => {
                let version = Some(version.clone());
                self.moves = Stored { content: self.writing_moves.take(), version };
            }
            (Subject::Moves, _) => {
                self.writing_moves = None;
                self.moves_doubtful = true;
                self.next = now + pace::LEADER_CONFLICT;
            }
        }
    }
}

/// Whose record is under this key.
fn member_of(key: &Key) -> Option<MemberId> {
    keys::name_in(key).map(|id| MemberId::new(&id))
}

/// The keys of one read.
struct Page {
    room: usize,
    keys: BTreeSet<Key>,
}

impl Page {
    /// Asks for a record of so many units, if there is room and it wasn't asked for just now. A
    /// page has one record at least.
    fn ask(&mut self, placing: &Placing, now: Moment, key: Key, units: usize) {
        if self.room == 0 || self.keys.contains(&key) || !placing.may_ask(&key, now) {
            return;
        }
        if units > self.room && !self.keys.is_empty() {
            self.room = 0;
            return;
        }
        self.room = self.room.saturating_sub(units);
        self.keys.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incumbent_core::store::Version;

    #[test]
    fn what_came_back_from_a_version_is_not_forgotten_if_its_write_is_in_doubt() {
        let stored = |rollout: &Rollout, version: &str| Record {
            key: keys::rollout(),
            value: rollout.bytes(),
            version: Version::new(version),
            age: None,
        };
        let mut placing = Placing::new(6);
        let before = Rollout::none(6);
        placing.rollout =
            Stored { content: Some(before.clone()), version: Some(Version::new("1")) };
        let mut decided = before.clone();
        decided.give_up("work", "d1", "3", "it did not start in time");
        placing.writing_rollout = Some(decided.clone());
        placing.wrote(Moment::START, &Subject::Rollout, Err(ErrorKind::Unknown));
        assert!(placing.rollout_doubtful);
        placing.observe_rollout(&stored(&before, "1"));
        assert_eq!(placing.rollout.content.as_ref(), Some(&decided), "it has not landed");
        assert!(placing.rollout_unwritten, "so that it is written again");
        placing.observe_rollout(&stored(&decided, "2"));
        assert_eq!(placing.rollout.content.as_ref(), Some(&decided), "it has landed");
        assert!(!placing.rollout_unwritten);
    }
}
