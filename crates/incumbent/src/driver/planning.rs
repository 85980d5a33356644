//! Plans, which are made where neither beats nor work wait for them.

use std::collections::BTreeSet;
use std::time::Duration;

use incumbent_core::{LeaseName, Moment};
use incumbent_duties::{Planned, Planning, PlanningId};

use super::Driver;
use crate::driver::command::Command;
use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::{clock, panic, thread};

/// So many plans that don't return are put up with: each keeps a thread.
const MOST_HUNG: usize = 3;

/// How long a node stands back from leading the cluster that can't plan.
const STANDS_BACK: Duration = Duration::from_secs(60);

/// The plans that are being made.
#[derive(Default)]
pub(super) struct Plans {
    /// The one that is waited for, and until when.
    underway: Option<(PlanningId, Moment)>,
    /// When the latest was begun.
    begun: Moment,
    /// Those that are waited for no more, and have not returned.
    hung: BTreeSet<PlanningId>,
}

impl Driver {
    /// Has the plans made that are due; says whether the core was told anything. Planning takes
    /// its time, and the application's own placements may take any or panic (O1, O8): each plan
    /// has a thread of its own, and the core asks for one at a time.
    pub(super) fn plan(&mut self) -> bool {
        let mut told = self.give_up_planning();
        while let Some(planning) = self.core.next_planning() {
            let id = planning.id;
            if let Err(said) = self.start_planning(planning) {
                self.core.planned(clock::now(), id, Err(said));
                told = true;
            }
        }
        told
    }

    /// A plan was made, or could not be.
    pub(super) fn planned(&mut self, now: Moment, id: PlanningId, result: Result<Planned, String>) {
        if self.plans.hung.remove(&id) {
            tracing::info!(node = self.name(), action = "plan", "a placement returned too late");
            return;
        }
        if self.plans.underway.take_if(|(underway, _)| *underway == id).is_some() {
            self.shared.meters.planned(now.since(self.plans.begun));
            if let Ok(planned) = &result {
                self.shared.meters.placements.planned(now, planned.moved, planned.unplaced);
            }
        }
        self.core.planned(now, id, result);
    }

    fn start_planning(&mut self, planning: Planning) -> Result<(), String> {
        // One that was left behind by a former leadership of this node counts too.
        if let Some((former, _)) = self.plans.underway.take() {
            self.plans.hung.insert(former);
        }
        if self.plans.hung.len() >= MOST_HUNG {
            self.leave_planning_to_others();
            return Err(format!("{MOST_HUNG} plans have not returned; another node is to plan"));
        }
        let (id, commands) = (planning.id, self.commands.clone());
        let plan = move || {
            let made = panic::contain(|| planning.run());
            let result = made.map_err(|said| format!("it panicked: {said}"));
            commands.send(Command::Planned { id, result: Box::new(result) });
        };
        let started = match planted(DriverMutant::PlannedOnTheBeat) {
            true => {
                plan();
                Ok(())
            }
            false => thread::apart("incumbent-plans", plan),
        };
        started.map_err(|error| format!("no thread could be started for it: {error}"))?;
        self.plans.begun = clock::now();
        self.plans.underway = Some((id, self.plans.begun + limit(self.config.timing.ttl)));
        Ok(())
    }

    /// A plan that doesn't return counts as failed: another may, and where things stand still
    /// somebody must hear of it.
    fn give_up_planning(&mut self) -> bool {
        let now = clock::now();
        let Some((id, _)) = self.plans.underway.take_if(|(_, until)| now >= *until) else {
            return false;
        };
        self.plans.hung.insert(id);
        let limit = limit(self.config.timing.ttl);
        // The core says so in the log when it hears of it.
        self.core.planned(now, id, Err(format!("a placement has not returned for {limit:?}")));
        true
    }

    fn leave_planning_to_others(&mut self) {
        let (now, leader) = (clock::now(), LeaseName::leader());
        let Some(term) = self.core.held(&leader) else { return };
        tracing::error!(
            node = self.name(),
            term,
            hung = self.plans.hung.len(),
            action = "plan",
            "placements don't return on this node, so it stops leading the cluster for a while"
        );
        self.core.resign(now, &leader, term, None);
        self.core.abstain(&leader, now + STANDS_BACK);
    }
}

/// How long a plan may take. A ttl below 3 s is for tests, which don't wait so long.
fn limit(ttl: Duration) -> Duration {
    if ttl < Duration::from_secs(3) { ttl * 5 } else { (ttl * 4).max(Duration::from_secs(60)) }
}
