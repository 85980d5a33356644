//! Duties, as the driver sees them: terms that go to a family instead of a campaign.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::{LeaseName, MemberId, Moment};
use incumbent_duties::records::DutySpec;
use incumbent_duties::{DutyId, DutyStatus};
use tokio_util::sync::CancellationToken;

use super::Driver;
use crate::cluster::Cluster;
use crate::driver::{clock, thread};
use crate::duty::{Counted, FamilyRuntime, Preparing, Tending};
use crate::lead::hold::Hold;
use crate::lead::leadership::Leadership;
use crate::lead::loss::Loss;
use crate::lead::tenure::Tenure;
use crate::node::event::Event;
use crate::node::shared::Held;

#[derive(Default)]
pub(super) struct Duties {
    families: HashMap<String, (Arc<FamilyRuntime>, Vec<DutySpec>)>,
    /// Elected here, and to be started once that is published.
    elected: Vec<(Arc<FamilyRuntime>, DutyId, Arc<Hold>)>,
    /// Those that subscribers were told of, with their terms.
    heard_of: BTreeMap<DutyId, u64>,
    /// Ends preparing for a duty.
    preparing: BTreeMap<DutyId, CancellationToken>,
}

impl Duties {
    pub(super) fn heard_of(&self) -> Vec<(DutyId, u64)> {
        self.heard_of.iter().map(|(duty, term)| (duty.clone(), *term)).collect()
    }

    /// Nothing of what was elected is to be started.
    pub(super) fn forget_elected(&mut self) {
        self.elected.clear();
    }
}

impl Duties {
    /// Nothing that was prepared for will come.
    pub(super) fn stop_preparing(&mut self) {
        for stop in std::mem::take(&mut self.preparing).into_values() {
            stop.cancel();
        }
    }
}

impl Driver {
    /// A duty will change over to this node once it is prepared.
    pub(super) fn prepare(&mut self, duty: DutyId) {
        let Some(family) = self.duties.families.get(duty.family()).map(|(it, _)| Arc::clone(it))
        else {
            let error = "the family is not served any more".to_owned();
            return self.core.tell_prepared(clock::now(), &duty, Err(error));
        };
        tracing::debug!(node = self.name(), %duty, action = "prepare", "a duty is to be prepared for");
        let stop = CancellationToken::new();
        let preparing =
            Preparing { family, duty: duty.clone(), commands: self.commands.clone(), stop };
        let stop = preparing.stop.clone();
        if let Err(error) = thread::spawn_runner(preparing.run()) {
            return self.core.tell_prepared(clock::now(), &duty, Err(error.to_string()));
        }
        if let Some(former) = self.duties.preparing.insert(duty, stop) {
            former.cancel();
        }
    }

    pub(super) fn unprepare(&mut self, duty: &DutyId) {
        if let Some(stop) = self.duties.preparing.remove(duty) {
            stop.cancel();
        }
    }

    pub(super) fn serve(&mut self, now: Moment, family: Arc<FamilyRuntime>, duties: Vec<DutySpec>) {
        self.core.serve(now, &family.name, family.profile.clone(), &duties);
        self.duties.families.insert(family.name.clone(), (family, duties));
    }

    /// Tells a new core what this node serves.
    pub(super) fn serve_again(&mut self, now: Moment) {
        for (name, (family, duties)) in &self.duties.families {
            self.core.serve(now, name, family.profile.clone(), duties);
        }
    }

    pub(super) fn unserve(&mut self, family: &str) {
        self.core.unserve(family);
        self.duties.families.remove(family);
    }

    /// This node has the lease of a duty.
    pub(super) fn assigned(&mut self, duty: DutyId, lease: LeaseName, term: u64, member: MemberId) {
        let trust = self.trust.as_ref().filter(|(id, _)| *id == member);
        let trust = trust.filter(|_| !self.unfinished.contains_key(&lease));
        let (Some((_, trust)), Some((family, _))) =
            (trust, self.duties.families.get(duty.family()))
        else {
            // Nobody here runs it, or can run it yet. The leader will notice; until then others may have it.
            let now = clock::now();
            self.core.stopped(now, &lease, term);
            self.core.abstain(&lease, now + self.config.timing.ttl);
            return;
        };
        tracing::debug!(node = self.name(), %duty, term, action = "elected", "a duty is to start");
        let tenure = Arc::new(Tenure::new(lease.clone(), term, member, Arc::clone(trust)));
        let hold = Arc::new(Hold::new(Arc::clone(&tenure), self.commands.clone()));
        let held = Held { tenure: Arc::clone(&tenure), hold: Arc::downgrade(&hold) };
        Arc::make_mut(&mut self.held).insert(lease.clone(), held);
        self.held_changed = true;
        self.duties.preparing.remove(&duty);
        self.duties.elected.push((Arc::clone(family), duty, hold));
        self.tenures.insert(lease, tenure);
    }

    /// Starts what was elected and not lost since.
    pub(super) fn start_duties(&mut self) {
        for (family, duty, hold) in std::mem::take(&mut self.duties.elected) {
            if hold.tenure.lost().is_some() {
                continue;
            }
            let cluster = Cluster {
                store: self.lanes.store(),
                name: Arc::clone(&self.cluster),
                hints: Arc::clone(&self.hint_settings),
            };
            let leadership = Leadership::new(hold, self.commands.clone(), Arc::new(cluster), None);
            let heard_after = self.config.timing.beat * 2;
            let _counted = Counted::new(Arc::clone(&family));
            let tending = Tending { family, duty, leadership, heard_after, _counted };
            if let Err(error) = thread::spawn_runner(tending.run()) {
                tracing::error!(node = self.name(), %error, action = "start", "a duty can't be started");
            }
        }
    }

    pub(super) fn duty_status(&mut self, now: Moment, duty: DutyId, term: u64, status: DutyStatus) {
        if self.tenure(&duty.lease(), term).is_none() {
            return;
        }
        self.core.tell_status(now, &duty, term, status.clone());
        self.duties.heard_of.insert(duty.clone(), term);
        self.tell(match status {
            DutyStatus::Active => Event::DutyStarted { duty, term },
            DutyStatus::Done => Event::DutyDone { duty, term },
            DutyStatus::Failing { times, error, gave_up } => {
                Event::DutyFailed { duty, term, error, times, gave_up }
            }
        });
    }

    /// Nothing runs under the term any more. Does nothing about the leases of other work.
    pub(super) fn duty_stopped(&mut self, tenure: &Tenure) {
        let Some(duty) = DutyId::of(&tenure.lease) else { return };
        if self.duties.heard_of.remove(&duty).is_some() {
            let why = tenure.lost().map_or(Loss::WorkEnded, |lost| lost.why);
            self.tell(Event::DutyStopped { duty, term: tenure.term, why });
        }
    }

    /// The longest that a duty which is here may take to stop.
    pub(super) fn duty_grace(&self) -> Duration {
        let duties = self.tenures.keys().filter_map(DutyId::of);
        let grace =
            |duty: DutyId| self.duties.families.get(duty.family()).map(|(it, _)| it.runner.grace);
        duties.filter_map(grace).max().unwrap_or(Duration::ZERO)
    }
}
