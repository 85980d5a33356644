//! Leaving in order, within bounds: work, then leases, then the member.

use std::time::Duration;

use incumbent_core::{LeaseName, Moment};
use tokio::sync::oneshot;

use super::Driver;
use crate::driver::clock;
use crate::driver::command::Command;
use crate::driver::mutant::{DriverMutant, planted};
use crate::error::LeaveError;
use crate::lead::loss::Loss;
use crate::node::event::Event;

pub(super) struct Leaving {
    grace: Duration,
    /// Work that runs on past this is left behind.
    work_until: Moment,
    /// Set once all work has ended: the store has until then to confirm.
    close_until: Option<Moment>,
    /// The member is gone from the store. Work from before a panic may be left all the same.
    gone: bool,
    answers: Vec<oneshot::Sender<Result<(), LeaveError>>>,
    result: Result<(), LeaveError>,
}

impl Leaving {
    pub(super) fn wake_at(&self) -> Moment {
        self.close_until.unwrap_or(self.work_until)
    }
}

impl Driver {
    pub(super) fn leave(&mut self, answer: Option<oneshot::Sender<Result<(), LeaveError>>>) {
        let now = clock::now();
        if self.leaving.is_none() {
            let graces = self.campaigns.values().map(|candidate| candidate.grace);
            let grace =
                graces.max().unwrap_or(Duration::ZERO).max(self.grace).max(self.duty_grace());
            // The margin is for work that is aborted at the end of its grace period.
            let work_until = now + grace + self.config.timing.margin;
            self.leaving = Some(Leaving {
                grace,
                work_until,
                close_until: None,
                gone: false,
                answers: Vec::new(),
                result: Ok(()),
            });
            tracing::info!(node = %self.config.profile.node, action = "leave", "leaving");
            self.core.leave(now);
        }
        if let Some(leaving) = &mut self.leaving {
            leaving.answers.extend(answer);
        }
    }

    /// The core has nothing more to do here.
    pub(super) fn member_left(&mut self) {
        tracing::info!(node = self.name(), action = "left", "left");
        match &mut self.leaving {
            Some(leaving) => leaving.gone = true,
            None => self.left(Ok(())),
        }
    }

    /// Sees whether a departure is complete, and gives up on one that takes too long.
    pub(super) fn check_leaving(&mut self, now: Moment) {
        let Some(leaving) = &mut self.leaving else { return };
        if self.over {
            return;
        }
        // The core knows nothing of work from before a panic, and leaves without it (O45).
        let former =
            self.unfinished.keys().filter(|_| !planted(DriverMutant::FormerWorkLeftBehind));
        let mut leases: Vec<LeaseName> = self.tenures.keys().chain(former).cloned().collect();
        if leases.is_empty() && leaving.gone {
            return self.left(Ok(()));
        }
        let error = if leases.is_empty() {
            let patience = self.config.timing.request * 2;
            let until = *leaving.close_until.get_or_insert(now + patience);
            (now >= until).then_some(LeaveError::Unconfirmed)
        } else {
            leaving.close_until = None;
            let grace = leaving.grace;
            leases.sort();
            (now >= leaving.work_until).then_some(LeaveError::WorkStillRuns { leases, grace })
        };
        if let Some(error) = error {
            tracing::warn!(node = %self.config.profile.node, action = "leave", %error, "the node did not leave in order");
            self.left(Err(error));
        }
    }

    /// The node is gone, in order or not. Who waits for that is answered at the very end.
    pub(super) fn left(&mut self, result: Result<(), LeaveError>) {
        self.over = true;
        if let Some(leaving) = &mut self.leaving {
            leaving.result = result;
        }
    }

    /// Ends all terms at once.
    pub(super) fn end_all(&mut self, why: Loss) {
        for tenure in std::mem::take(&mut self.tenures).into_values() {
            tenure.abort();
            let news = tenure.end(why, true);
            self.duty_stopped(&tenure);
            if news && !tenure.lease.is_duty() {
                let (lease, term) = (tenure.lease.clone(), tenure.term);
                self.tell(Event::Lost { lease, term, why });
            }
        }
        for candidate in self.campaigns.values() {
            drop(candidate.seat.take());
        }
        self.held = std::sync::Arc::default();
        self.held_changed = true;
        self.publish_held();
        self.leaders.forget_all();
        self.publish_leaders();
    }

    /// The last that this driver does: all that was held is over, and nobody waits in vain.
    pub(super) fn farewell(&mut self) {
        self.end_all(Loss::Leaving);
        self.duties.stop_preparing();
        self.shared.set_leads_cluster(false);
        self.shared.member.store(None);
        let state = self.state();
        self.subscribers.part(&state);
        let closing = self.campaigns.values().filter(|_| !planted(DriverMutant::SeatNeverClosed));
        for candidate in closing {
            candidate.seat.close();
        }
        self.queue.close();
        while let Ok(command) = self.queue.try_recv() {
            if let Command::Campaign { seat, .. } = command {
                seat.close();
            }
        }
        if let Some(Leaving { answers, result, .. }) = self.leaving.take() {
            for answer in answers {
                let _ = answer.send(result.clone());
            }
        }
    }
}
