//! The member's side of duties: what it serves, what its roster asks for, how it gets on.

use super::{
    Event, Expect, Lane, MemberId, Moment, Node, Placing, Profile, Purpose, Read, Subject, keys,
};
use crate::candidacy::Candidacy;
use crate::duty::DutyId;
use crate::leader::Wanted;
use crate::lease::Stage;
use crate::mutant::Mutant;
use crate::names::LeaseName;
use crate::own;
use crate::placing::{Failure, Planned, Planning, PlanningId, Round, Step};
use crate::records::{Content, DutySpec, FamilyProfile, Report, Roster, Unreadable};
use crate::store::{ErrorKind, Found, Outcome, Reply};
use crate::worker::{DutyStatus, ListingStage};

impl Node {
    /// Serves a family: from now on the leader may ask this node to run its duties. Called again,
    /// it changes what is known of the family.
    pub fn serve(
        &mut self,
        now: Moment,
        family: &str,
        profile: FamilyProfile,
        duties: &[DutySpec],
    ) {
        if self.leaving {
            return;
        }
        // Of a duty whose description no record can hold, others could never know.
        let most = self.config.max_value / 2;
        let (listed, large): (Vec<_>, Vec<_>) =
            duties.iter().cloned().partition(|spec| crate::records::size(spec) <= most);
        for spec in large {
            let (family, duty) = (family.to_owned(), spec.name);
            self.say(Event::TooLarge { family, duty, most });
        }
        self.worker.serve(now, family, profile, &listed, self.config.max_value);
        self.profile_changed();
    }

    /// Serves a family no more. What runs of it is drained when the leader has taken it away.
    pub fn unserve(&mut self, family: &str) {
        self.worker.unserve(family);
        self.profile_changed();
    }

    /// Says how a duty gets on that was elected here in this term.
    pub fn tell_status(&mut self, now: Moment, duty: &DutyId, term: u64, status: DutyStatus) {
        if self.held(&duty.lease()) == Some(term) {
            let status = match status {
                DutyStatus::Failing { times, error, gave_up } => {
                    let error = error.chars().take(500).collect();
                    DutyStatus::Failing { times, error, gave_up }
                }
                DutyStatus::Active | DutyStatus::Done => status,
            };
            self.worker.statuses.insert(duty.clone(), status);
            self.worker.changed(now, &self.config.timing);
        }
    }

    /// Says what a duty is at, for people.
    pub fn tell_progress(&mut self, now: Moment, duty: &DutyId, text: &str) {
        if self.held(&duty.lease()).is_some() {
            self.worker.progress.insert(duty.clone(), text.chars().take(200).collect());
            self.worker.changed(now, &self.config.timing);
        }
    }

    /// Says how preparing for a duty ended that [`Event::Prepare`] asked for.
    pub fn tell_prepared(&mut self, now: Moment, duty: &DutyId, result: Result<(), String>) {
        let short = |error: String| error.chars().take(200).collect();
        if self.worker.prepared(duty, result.map_err(short)) {
            self.worker.changed(now, &self.config.timing);
        }
    }

    /// Says how much this node has to do beside its duties, in the unit of their weights.
    pub fn tell_load(&mut self, now: Moment, load: u64) {
        if self.worker.load != load {
            self.worker.load = load;
            self.worker.changed(now, &self.config.timing);
        }
    }

    /// The duties that the leader wants here.
    pub fn wanted_duties(&self) -> impl Iterator<Item = &DutyId> {
        self.worker.wanted.iter()
    }

    pub(super) fn drive_worker(&mut self, now: Moment) {
        if !self.trusted(now) {
            return;
        }
        for hash in self.worker.listings_due(now) {
            let Some(listing) = self.worker.catalogs.get_mut(&hash) else { continue };
            listing.stage = ListingStage::Sending;
            let content = listing.content.clone();
            let put = self.put(keys::catalog(&hash), Expect::Absent, content, false);
            self.send(now, Lane::Change, vec![put], Vec::new(), Purpose::Catalog(hash));
        }
        if self.worker.take_due(now) {
            self.make_report(now);
        }
        let Some(id) = self.own_id().cloned() else { return };
        match self.worker.report.step(now) {
            None => {}
            Some(own::Step::Write(expect, content)) => {
                let put = self.put(keys::report(&id), expect, content, false);
                self.send(now, Lane::Change, vec![put], Vec::new(), Purpose::Report);
            }
            Some(own::Step::Read) => {
                let reads = vec![Read::Key { key: keys::report(&id), unless: None }];
                self.send(now, Lane::Change, Vec::new(), reads, Purpose::ReportRead);
            }
        }
    }

    fn make_report(&mut self, now: Moment) {
        let Some(id) = self.own_id().cloned() else { return };
        let mut report = self.worker.draft(id);
        for duty in &self.worker.wanted {
            let stage = self.leases.get(&duty.lease()).map(|lease| &lease.stage);
            let early = self.config.planted.is(Mutant::AcknowledgedBeforeStart);
            let known = self.worker.statuses.contains_key(duty);
            if !matches!(stage, Some(Stage::Held(_))) {
                report.waiting.insert(duty.clone());
            } else if !known && !early {
                report.starting.insert(duty.clone());
            }
        }
        self.note_draining(&mut report);
        report.cut(self.config.max_value);
        self.worker.publish(now, report);
    }

    fn note_draining(&self, report: &mut Report) {
        for lease in self.leases.values().filter(|lease| lease.name.is_duty()) {
            let over = match lease.stage {
                Stage::Seeking | Stage::Taking | Stage::Proving(..) => {
                    self.running.contains_key(&lease.name)
                }
                Stage::Held(_) => false,
                Stage::Stopping(_) | Stage::ToFree(_) | Stage::Freeing(_) => true,
            };
            if over && let Some(duty) = DutyId::of(&lease.name) {
                report.draining.insert(duty);
            }
        }
    }

    /// What goes with each beat beside the board.
    pub(super) fn roster_read(&self) -> Option<Read> {
        let id = self.own_id().filter(|_| self.worker.serves())?;
        Some(Read::Key { key: keys::roster(id), unless: self.worker.version.clone() })
    }

    pub(super) fn observe_roster(&mut self, now: Moment, found: Option<&Found>) {
        let Some(Found::Record(stored)) = found else { return };
        if self.worker.version.as_ref() == Some(&stored.version) {
            return;
        }
        self.worker.version = Some(stored.version.clone());
        match Roster::read(stored) {
            Ok(roster) if Some(&roster.member) == self.own_id() => self.obey_roster(now, roster),
            Ok(roster) => self.say(Event::Unreadable(Unreadable {
                key: stored.key.as_str().to_owned(),
                reason: format!("it is the roster of {}", roster.member),
            })),
            Err(unreadable) => self.say(Event::Unreadable(unreadable)),
        }
    }

    fn obey_roster(&mut self, now: Moment, roster: Roster) {
        let orders = self.worker.obey(roster);
        for (duty, former) in orders.new {
            self.campaign(now, duty.lease(), Candidacy::default());
            if let Some(former) = former {
                self.learn_former(&duty.lease(), former);
            }
            if self.config.planted.is(Mutant::DutyWithoutLease) {
                self.elect(now, &duty.lease(), 1);
            }
        }
        for (duty, successor) in orders.gone {
            self.withdraw_for(now, &duty.lease(), successor);
        }
        for duty in orders.prepare {
            self.say(Event::Prepare { duty });
        }
        for duty in orders.forget {
            self.say(Event::Unprepare { duty });
        }
        self.worker.changed(now, &self.config.timing);
    }

    /// Something became of the lease of a duty.
    pub(super) fn duty_changed(&mut self, now: Moment, lease: &super::LeaseName) {
        if let Some(duty) = DutyId::of(lease) {
            if self.held(lease).is_none() {
                self.worker.statuses.remove(&duty);
                self.worker.progress.remove(&duty);
            }
            self.worker.changed(now, &self.config.timing);
        }
    }

    pub(super) fn cataloged(
        &mut self,
        now: Moment,
        hash: &str,
        outcome: Result<&Outcome, ErrorKind>,
    ) {
        let pause = self.random.span(self.config.timing.ttl / 60, self.config.timing.ttl / 20);
        let Some(listing) = self.worker.catalogs.get_mut(hash) else { return };
        // Refused means that it is there: its name follows from its content.
        listing.stage = match outcome {
            Ok(_) => ListingStage::There,
            Err(_) => ListingStage::Due(now + pause),
        };
    }

    pub(super) fn reported(&mut self, now: Moment, outcome: Result<&Outcome, ErrorKind>) {
        self.worker.report.wrote(now, outcome, &mut self.random);
        self.announce_report();
    }

    pub(super) fn report_read(&mut self, now: Moment, found: Result<&Found, ErrorKind>) {
        self.worker.report.read(now, found, &mut self.random);
        self.announce_report();
    }

    /// Sends what placing wants read or written, if this node leads the cluster.
    pub(super) fn drive_placing(&mut self, now: Moment) {
        let Some(own) = self.own_id().cloned() else { return };
        let Some((step, missing)) = self.placed(now, &own, |placing, round| {
            let step = placing.step(round);
            let misses = |profile: &Profile| {
                profile.families.values().any(|family| placing.misses(&family.catalogs))
            };
            let living = round.leader.living().filter(|(_, _, profile)| misses(profile));
            (step, living.map(|(id, _, _)| id.clone()).collect())
        }) else {
            return;
        };
        if let Some(leader) = &mut self.leader {
            leader.missing = missing;
        }
        match step {
            None => {}
            Some(Step::Read(reads)) => {
                self.send(now, Lane::Watch, Vec::new(), reads, Purpose::PlaceRead);
            }
            Some(Step::Write(writes)) => self.write_placing(now, writes),
        }
    }

    /// The next plan to be made: by [`Planning::run`], on another thread than that of this node.
    /// [`Self::planned`] is told what became of it. One is handed out at a time, unless this node
    /// stopped leading and leads again; the result of the former is ignored then.
    pub fn next_planning(&mut self) -> Option<Planning> {
        if !self.placing.as_ref().is_some_and(Placing::wants_plan) {
            return None;
        }
        let own = self.own_id()?.clone();
        self.requests += 1;
        let id = PlanningId(self.requests);
        // What is planned doesn't depend on the time.
        self.placed(Moment::START, &own, |placing, round| placing.next_planning(round, id))?
    }

    /// Takes in a plan, or why it could not be made. To be followed by [`Self::poll`].
    pub fn planned(&mut self, now: Moment, id: PlanningId, result: Result<Planned, String>) {
        let Some(own) = self.own_id().cloned().filter(|_| self.trusted(now)) else { return };
        match self.placed(now, &own, |placing, round| placing.planned(round, id, result)) {
            None => {}
            Some(Ok(writes)) => self.write_placing(now, writes),
            Some(Err(Failure { reason, again_in })) => {
                self.say(Event::PlanningFailed { reason, again_in });
            }
        }
    }

    fn placed<T>(
        &mut self,
        now: Moment,
        own: &MemberId,
        act: impl FnOnce(&mut Placing, &Round<'_>) -> T,
    ) -> Option<T> {
        let (Some(leader), Some(placing)) = (&self.leader, &mut self.placing) else { return None };
        let round = Round {
            now,
            wall_ms: self.wall_ms,
            leader,
            own,
            placement: &self.config.placement,
            timing: &self.config.timing,
            max_value: self.config.max_value,
            planted: self.config.planted,
        };
        Some(act(placing, &round))
    }

    fn write_placing(&mut self, now: Moment, writes: Vec<(Subject, Wanted)>) {
        for (subject, wanted) in writes {
            let write = self.stamped(wanted);
            let purpose = Purpose::PlaceWrite(subject);
            self.send(now, Lane::Change, vec![write], Vec::new(), purpose);
        }
    }

    pub(super) fn placing_read(&mut self, now: Moment, answer: Result<&Reply, ErrorKind>) {
        if let Some(placing) = &mut self.placing {
            placing.was_read(now, answer, self.config.planted);
        }
        if let Some(term) = self.placing.as_ref().and_then(Placing::superseded) {
            self.outdated(now, &LeaseName::leader(), term);
        }
    }

    pub(super) fn placing_wrote(
        &mut self,
        now: Moment,
        subject: &Subject,
        outcome: Result<&Outcome, ErrorKind>,
    ) {
        if let Some(placing) = &mut self.placing {
            placing.wrote(now, subject, outcome);
        }
    }

    fn announce_report(&mut self) {
        if let (Some(revision), Some(member)) = (self.worker.reported(), &mut self.member) {
            member.tell_report(revision);
        }
    }
}
