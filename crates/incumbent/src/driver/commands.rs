//! What handles ask for.

use std::sync::Arc;

use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_core::{LeaseName, Moment};

use super::{Candidate, Driver};
use crate::driver::clock;
use crate::driver::command::Command;
use crate::error::JoinError;
use crate::lead::loss::Loss;
use crate::lead::seat::Seat;
use crate::node::event::{Event, State};

/// So many commands are carried out before replies are looked at again.
const BURST: usize = 1024;

impl Driver {
    pub(super) fn obey_all(&mut self, first: Command) {
        self.obey(first);
        for _ in 1..BURST {
            match self.queue.try_recv() {
                Ok(command) => self.obey(command),
                Err(_) => return,
            }
        }
    }

    pub(super) fn obey(&mut self, command: Command) {
        let now = clock::now();
        match command {
            Command::Campaign { seat, candidacy, grace } => {
                let lease = seat.lease.clone();
                if !self.unfinished.contains_key(&lease) {
                    self.core.campaign(now, lease.clone(), candidacy.clone());
                }
                self.counting.begin(&lease);
                self.campaigns.insert(lease, Candidate { seat, candidacy, grace });
            }
            Command::Attempt { lease, deadline, answer } => {
                self.attempts.add(lease, deadline, answer);
            }
            Command::Withdraw(seat) => self.withdraw(now, &seat),
            Command::Stopped { lease, term, abstain } => {
                if now >= self.core.trusted_until() {
                    // Work is cut off by its own clock, perhaps before this thread looked at it:
                    // then it ended because trust did.
                    self.core.poll(now);
                    self.react();
                }
                self.stopped(now, &lease, term);
                if let Some(pause) = abstain {
                    self.core.abstain(&lease, now + pause);
                }
            }
            Command::Resign { lease, term, successor } => {
                self.core.resign(now, &lease, term, successor);
            }
            Command::Freed { lease, term, answer } => {
                if self.tenures.get(&lease).is_some_and(|tenure| tenure.term == term) {
                    let until = now + self.config.timing.request * 2;
                    self.waiters.await_freed((lease, term), until, answer);
                }
            }
            Command::Confirm { lease, term, answer } => {
                self.waiters.await_confirmed((lease.clone(), term), answer);
                self.core.confirm(now, &lease, term);
            }
            Command::Serve { family, duties } => self.serve(now, family, duties),
            Command::Unserve { family } => self.unserve(&family),
            Command::Status { duty, term, status } => self.duty_status(now, duty, term, status),
            Command::Progress { duty, term, text } => {
                if self.tenure(&duty.lease(), term).is_some() {
                    self.core.tell_progress(now, &duty, &text);
                }
            }
            Command::Prepared { duty, result } => self.core.tell_prepared(now, &duty, result),
            Command::Load(load) => {
                self.load = Some(load);
                self.core.tell_load(now, load);
            }
            Command::Met { member, profile } => self.met(&member, &profile),
            Command::Dead { member } => self.core.proven_dead(now, &member),
            Command::Planned { id, result } => self.planned(now, id, *result),
            Command::Subscribe(subscriber) => {
                let state = self.state();
                self.subscribers.add(subscriber, state);
            }
            Command::Past(answer) => drop(answer.send(self.core.past())),
            Command::Leave(answer) => self.leave(Some(answer)),
            Command::Abandon => self.leave(None),
        }
        // Each command's events are acted on before the next command, which may rely on them.
        self.react();
    }

    fn withdraw(&mut self, now: Moment, seat: &Arc<Seat>) {
        let lease = &seat.lease;
        if self.campaigns.get(lease).is_some_and(|known| Arc::ptr_eq(&known.seat, seat)) {
            self.campaigns.remove(lease);
            self.core.withdraw(now, lease);
            self.witnesses.forget(lease);
            self.leaders.forget(lease);
            self.counting.end(lease);
        }
    }

    /// The work under a term has ended: everyone is told before the core may free the lease.
    fn stopped(&mut self, now: Moment, lease: &LeaseName, term: u64) {
        if let Some(tenure) = self.tenures.get(lease).filter(|tenure| tenure.term == term).cloned()
        {
            self.tenures.remove(lease);
            self.lost(&tenure, Loss::WorkEnded, false);
            self.duty_stopped(&tenure);
        }
        self.core.stopped(now, lease, term);
        if self.unfinished.get(lease) == Some(&term) {
            self.unfinished.remove(lease);
            if let Some(candidate) = self.campaigns.get(lease) {
                self.core.campaign(now, lease.clone(), candidate.candidacy.clone());
            }
        }
    }

    pub(super) fn state(&self) -> Event {
        let mut leads: Vec<(LeaseName, u64)> = self
            .held
            .values()
            .filter(|held| !held.tenure.lease.is_duty())
            .map(|held| (held.tenure.lease.clone(), held.tenure.term))
            .collect();
        leads.sort();
        let members = self.shared.members.load().as_ref().clone();
        let duties = self.duties.heard_of();
        let store_error = self.health.failure().map(|failure| failure.error.clone());
        let member = self.core.member().cloned();
        let leaders = self.leaders.known();
        Event::State(State { member, leads, leaders, duties, members, store_error })
    }

    /// The first incarnation meets a store that will never have it.
    pub(super) fn refuse_joining(&mut self, error: &StoreError) {
        if error.kind == ErrorKind::Rejected
            && let Some(joining) = self.joining.take()
        {
            let _ = joining.answer.send(Err(JoinError::Rejected(error.clone())));
            self.over = true;
        }
    }
}
