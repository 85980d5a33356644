//! Attempts to lead that somebody waits for.

use incumbent_core::records::LeaseRecord;
use incumbent_core::{LeaseName, Moment};
use tokio::sync::oneshot;

use super::Driver;
use crate::lead::attempt::{AttemptOutcome, OtherLeader};

#[derive(Default)]
pub(super) struct Attempts(Vec<OpenAttempt>);

pub(super) struct OpenAttempt {
    lease: LeaseName,
    deadline: Moment,
    pub(super) answer: oneshot::Sender<AttemptOutcome>,
}

impl Attempts {
    pub(super) fn add(
        &mut self,
        lease: LeaseName,
        deadline: Moment,
        answer: oneshot::Sender<AttemptOutcome>,
    ) {
        self.0.push(OpenAttempt { lease, deadline, answer });
    }

    pub(super) fn take(&mut self) -> Vec<OpenAttempt> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn wake_at(&self) -> Moment {
        self.0.iter().map(|entry| entry.deadline).min().unwrap_or(Moment::NEVER)
    }
}

impl Driver {
    pub(super) fn check_attempts(&mut self, now: Moment) {
        let waiting = self.attempts.take();
        for entry in waiting.into_iter().filter(|entry| !entry.answer.is_closed()) {
            match self.outcome(&entry, now) {
                Some(outcome) => drop(entry.answer.send(outcome)),
                None => self.attempts.0.push(entry),
            }
        }
    }

    fn outcome(&self, entry: &OpenAttempt, now: Moment) -> Option<AttemptOutcome> {
        if self.tenures.get(&entry.lease).is_some_and(|tenure| tenure.lost().is_none()) {
            return Some(AttemptOutcome::Elected);
        }
        if let Some((record, until)) = self.core.rival(&entry.lease)
            && until.is_none_or(|until| now < until)
        {
            return Some(AttemptOutcome::Other(other(&entry.lease, record, until, now)));
        }
        if now < entry.deadline && self.leaving.is_none() {
            return None;
        }
        let trusted = self.core.member().is_some() && now < self.core.trusted_until();
        Some(match self.health.last() {
            None if trusted => AttemptOutcome::Conflict,
            None => {
                AttemptOutcome::Unavailable("this node is not a member at the moment".to_owned())
            }
            Some(error) => AttemptOutcome::Unavailable(error.to_owned()),
        })
    }
}

fn other(
    lease: &LeaseName,
    record: &LeaseRecord,
    until: Option<Moment>,
    now: Moment,
) -> OtherLeader {
    let holder = record.holder.as_ref();
    OtherLeader {
        lease: lease.clone(),
        node: holder.map(|holder| holder.node.clone()).unwrap_or_default(),
        address: holder.and_then(|holder| holder.address.clone()),
        payload: record.payload.clone(),
        term: record.term,
        since_ms: record.since_ms(),
        due: until.map(|until| until.since(now)),
    }
}
