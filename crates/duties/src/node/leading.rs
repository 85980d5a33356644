//! The leader's side: what it reads and writes to place duties, while this node leads.

use std::collections::BTreeSet;

use incumbent_core::leader::WantedWrite;
use incumbent_core::records::Profile;
use incumbent_core::store::{ErrorKind, Lane, Reply, Write};
use incumbent_core::{LeaseName, Moment};

use super::{DutyNode, Errand};
use crate::event::DutyEvent;
use crate::placing::{
    Placing, PlacingStep, PlanFailure, Planned, Planning, PlanningId, Round, Writes,
};

impl DutyNode {
    /// Sends what placing wants read or written, if this node leads the cluster.
    pub(super) fn drive_placing(&mut self, now: Moment) {
        let Some((placing, round)) = self.round(now) else { return };
        let step = placing.step(&round);
        let mut missing = BTreeSet::new();
        // Nearly always none is, and this is asked whenever anything happens.
        if placing.misses_any() {
            let misses = |profile: &Profile| {
                profile.families.values().any(|family| placing.misses(&family.catalogs))
            };
            let living = round.leader.living().filter(|(_, _, profile)| misses(profile));
            missing.extend(living.map(|(id, _, _)| id.clone()));
        }
        self.core.tell_missing(missing);
        match step {
            None => {}
            Some(PlacingStep::Read(reads)) => {
                self.send(now, Lane::Watch, Vec::new(), reads, Errand::PlaceRead);
            }
            Some(PlacingStep::Write(writes)) => self.write_placing(now, writes),
        }
    }

    /// The next plan to be made: by [`Planning::run`], on another thread than that of this node.
    /// [`Self::planned`] is told what became of it. One is handed out at a time, unless this node
    /// stopped leading and leads again; the result of the former is ignored then.
    pub fn next_planning(&mut self) -> Option<Planning> {
        if !self.placing.as_ref().is_some_and(Placing::wants_plan) {
            return None;
        }
        self.plannings += 1;
        let id = PlanningId(self.plannings);
        // What is planned doesn't depend on the time.
        let (placing, round) = self.round(Moment::START)?;
        placing.next_planning(&round, id)
    }

    /// Takes in a plan, or why it could not be made. To be followed by [`Self::poll`].
    pub fn planned(&mut self, now: Moment, id: PlanningId, result: Result<Planned, String>) {
        if !self.core.is_trusted(now) {
            return;
        }
        let Some((placing, round)) = self.round(now) else { return };
        match placing.planned(&round, id, result) {
            Ok(writes) => self.write_placing(now, writes),
            Err(PlanFailure { reason, again_in }) => {
                self.say(DutyEvent::PlanningFailed { reason, again_in });
            }
        }
    }

    /// What this node places, and what it goes by now, if it leads the cluster.
    fn round(&mut self, now: Moment) -> Option<(&mut Placing, Round<'_>)> {
        let (leader, own) = (self.core.leading()?, self.core.member()?);
        let config = self.core.config();
        let round = Round {
            now,
            wall_ms: self.core.wall_ms(),
            leader,
            own,
            placement: &self.placement,
            timing: &config.timing,
            max_value: config.max_value,
            planted: config.planted,
        };
        Some((self.placing.as_mut()?, round))
    }

    fn write_placing(&mut self, now: Moment, writes: Writes) {
        for (subject, wanted) in writes {
            let write = match wanted {
                WantedWrite::Put(key, expect, value) => self.core.put(key, expect, value, true),
                WantedWrite::Delete(key) => Write::Delete(key),
            };
            self.send(now, Lane::Change, vec![write], Vec::new(), Errand::PlaceWrite(subject));
        }
    }

    pub(super) fn placing_read(&mut self, now: Moment, answer: Result<&Reply, ErrorKind>) {
        let Some(placing) = &mut self.placing else { return };
        placing.was_read(now, answer, self.core.config().planted);
        if let Some(term) = placing.superseded() {
            self.core.outdated(now, &LeaseName::leader(), term);
        }
    }
}
