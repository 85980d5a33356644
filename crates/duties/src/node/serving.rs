//! The member's side: what it serves, what its roster asks for, how it gets on.

use incumbent_core::mutant::Mutant;
use incumbent_core::own::Upkeep;
use incumbent_core::records::{Content, FamilyProfile, Unreadable, size};
use incumbent_core::store::{ErrorKind, Expect, Found, Lane, Outcome, Read};
use incumbent_core::{LeaseName, Moment, Stance, keys};

use super::{DutyNode, Errand};
use crate::duty::DutyId;
use crate::event::DutyEvent;
use crate::records::{DutySpec, Roster};
use crate::worker::{DutyStatus, PostingStage};

impl DutyNode {
    /// Serves a family: from now on the leader may ask this node to run its duties. Called again,
    /// it changes what is known of the family.
    pub fn serve(
        &mut self,
        now: Moment,
        family: &str,
        profile: FamilyProfile,
        duties: &[DutySpec],
    ) {
        if self.core.is_leaving() {
            return;
        }
        // Of a duty whose description no record can hold, others could never know.
        let max_value = self.core.config().max_value;
        let most = max_value / 2;
        let (listed, large): (Vec<_>, Vec<_>) =
            duties.iter().cloned().partition(|spec| size(spec) <= most);
        for spec in large {
            let (family, duty) = (family.to_owned(), spec.name);
            self.say(DutyEvent::TooLarge { family, duty, most });
        }
        self.worker.serve(now, family, profile, &listed, max_value);
        self.tell_families();
    }

    /// Serves a family no more. What runs of it is drained when the leader has taken it away.
    pub fn unserve(&mut self, family: &str) {
        self.worker.unserve(family);
        self.tell_families();
    }

    fn tell_families(&mut self) {
        self.core.tell_families(self.worker.families.clone());
        self.core.tell_listed(self.worker.is_listed());
    }

    /// Says how a duty gets on that was elected here in this term.
    pub fn tell_status(&mut self, now: Moment, duty: &DutyId, term: u64, status: DutyStatus) {
        if self.core.held(&duty.lease()) == Some(term) {
            let status = match status {
                DutyStatus::Failing { times, error, gave_up } => {
                    let error = error.chars().take(500).collect();
                    DutyStatus::Failing { times, error, gave_up }
                }
                DutyStatus::Active | DutyStatus::Done => status,
            };
            self.worker.statuses.insert(duty.clone(), status);
            self.worker.changed(now);
        }
    }

    /// Says what a duty is at, for people.
    pub fn tell_progress(&mut self, now: Moment, duty: &DutyId, text: &str) {
        if self.core.held(&duty.lease()).is_some() {
            self.worker.progress.insert(duty.clone(), text.chars().take(200).collect());
            self.worker.changed(now);
        }
    }

    /// Says how preparing for a duty ended that [`DutyEvent::Prepare`] asked for.
    pub fn tell_prepared(&mut self, now: Moment, duty: &DutyId, result: Result<(), String>) {
        let short = |error: String| error.chars().take(200).collect();
        if self.worker.prepared(duty, result.map_err(short)) {
            self.worker.changed(now);
        }
    }

    /// Says how much this node has to do beside its duties, in the unit of their weights.
    pub fn tell_load(&mut self, now: Moment, load: u64) {
        if self.worker.load != load {
            self.worker.load = load;
            self.worker.changed(now);
        }
    }

    /// The duties that the leader wants here.
    pub fn wanted_duties(&self) -> impl Iterator<Item = &DutyId> {
        self.worker.wanted.iter()
    }

    pub(super) fn drive_worker(&mut self, now: Moment) {
        if !self.core.is_trusted(now) {
            return;
        }
        for hash in self.worker.listings_due(now) {
            let Some(listing) = self.worker.catalogs.get_mut(&hash) else { continue };
            listing.stage = PostingStage::Sending;
            let content = listing.content.clone();
            let put = self.core.put(keys::catalog(&hash), Expect::Absent, content, false);
            self.send(now, Lane::Change, vec![put], Vec::new(), Errand::Catalog(hash));
        }
        if self.worker.take_due(now) {
            self.make_report(now);
        }
        let Some(id) = self.core.member().cloned() else { return };
        match self.worker.report.step(now) {
            None => {}
            Some(Upkeep::Write(expect, content)) => {
                let put = self.core.put(keys::report(&id), expect, content, false);
                self.send(now, Lane::Change, vec![put], Vec::new(), Errand::Report);
            }
            Some(Upkeep::Read) => {
                let reads = vec![Read::Key { key: keys::report(&id), unless: None }];
                self.send(now, Lane::Change, Vec::new(), reads, Errand::ReportRead);
            }
        }
    }

    fn make_report(&mut self, now: Moment) {
        let Some(id) = self.core.member().cloned() else { return };
        let config = self.core.config();
        let early = config.planted.is(Mutant::AcknowledgedBeforeStart);
        let mut report = self.worker.draft(id);
        for duty in &self.worker.wanted {
            if self.core.held(&duty.lease()).is_none() {
                report.waiting.insert(duty.clone());
            } else if !self.worker.statuses.contains_key(duty) && !early {
                report.starting.insert(duty.clone());
            }
        }
        report.draining.extend(self.core.ending().filter_map(DutyId::of));
        report.cut(config.max_value);
        self.worker.publish(now, report);
    }

    /// Has the roster read with each beat.
    pub(super) fn ride_along(&mut self) {
        let member = self.core.member().filter(|_| self.worker.serves());
        // Mostly it is what it was, and the key isn't made for nothing.
        let same = match (self.core.along(), member) {
            (Some(Read::Key { key, unless }), Some(id)) => {
                *unless == self.worker.version && keys::is_of(key, id)
            }
            (None, None) => true,
            (_, _) => false,
        };
        if !same {
            let unless = self.worker.version.clone();
            let read = member.map(|id| Read::Key { key: keys::roster(id), unless });
            self.core.ride_along(read);
        }
    }

    pub(super) fn observe_roster(&mut self, now: Moment, found: &Found) {
        let Found::Record(stored) = found else { return };
        if self.worker.version.as_ref() == Some(&stored.version) {
            return;
        }
        self.worker.version = Some(stored.version.clone());
        match Roster::read(stored) {
            Ok(roster) if Some(&roster.member) == self.core.member() => {
                self.obey_roster(now, roster);
            }
            Ok(roster) => self.core.tell_unreadable(Unreadable {
                key: stored.key.as_str().to_owned(),
                reason: format!("it is the roster of {}", roster.member),
            }),
            Err(unreadable) => self.core.tell_unreadable(unreadable),
        }
    }

    fn obey_roster(&mut self, now: Moment, roster: Roster) {
        let orders = self.worker.obey(roster);
        for (duty, former) in orders.new {
            self.core.campaign(now, duty.lease(), Stance::default());
            if let Some(former) = former {
                self.core.learn_former(&duty.lease(), former);
            }
        }
        for (duty, successor) in orders.gone {
            self.core.withdraw_for(now, &duty.lease(), successor);
        }
        for duty in orders.prepare {
            self.say(DutyEvent::Prepare { duty });
        }
        for duty in orders.forget {
            self.say(DutyEvent::Unprepare { duty });
        }
        self.worker.changed(now);
    }

    /// Something became of the lease of a duty.
    pub(super) fn duty_changed(&mut self, now: Moment, lease: &LeaseName) {
        if let Some(duty) = DutyId::of(lease) {
            if self.core.held(lease).is_none() {
                self.worker.statuses.remove(&duty);
                self.worker.progress.remove(&duty);
            }
            self.worker.changed(now);
        }
    }

    pub(super) fn cataloged(
        &mut self,
        now: Moment,
        hash: &str,
        outcome: Result<&Outcome, ErrorKind>,
    ) {
        let ttl = self.core.config().timing.ttl;
        let pause = self.random.span(ttl / 60, ttl / 20);
        let Some(listing) = self.worker.catalogs.get_mut(hash) else { return };
        // Refused means that it is there: its name follows from its content.
        listing.stage = match outcome {
            Ok(_) => PostingStage::There,
            Err(_) => PostingStage::Due(now + pause),
        };
    }
}
