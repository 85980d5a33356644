//! Who waits for an answer from the core.

use std::collections::{HashMap, VecDeque};

use incumbent_core::{LeaseName, Moment};
use tokio::sync::oneshot;

type TermKey = (LeaseName, u64);

#[derive(Default)]
pub(super) struct Waiters {
    freed: HashMap<TermKey, Vec<Freed>>,
    confirmed: HashMap<TermKey, VecDeque<oneshot::Sender<Option<bool>>>>,
}

struct Freed {
    until: Moment,
    answer: oneshot::Sender<()>,
}

impl Waiters {
    /// Waits for a lease to be freed; past the moment nothing is said.
    pub(super) fn await_freed(&mut self, key: TermKey, until: Moment, answer: oneshot::Sender<()>) {
        self.freed.entry(key).or_default().push(Freed { until, answer });
    }

    pub(super) fn freed(&mut self, key: &TermKey) {
        for waiter in self.freed.remove(key).unwrap_or_default() {
            let _ = waiter.answer.send(());
        }
    }

    /// The incarnation is over: its leases are freed with it, by one write or by the ttl.
    pub(super) fn forget_freed(&mut self) {
        self.freed.clear();
    }

    pub(super) fn await_confirmed(&mut self, key: TermKey, answer: oneshot::Sender<Option<bool>>) {
        self.confirmed.entry(key).or_default().push_back(answer);
    }

    /// The core answers each question once and in order, so an answer is never older than its
    /// question.
    pub(super) fn confirmed(&mut self, key: &TermKey, held: Option<bool>) {
        let Some(waiting) = self.confirmed.get_mut(key) else { return };
        if let Some(answer) = waiting.pop_front() {
            let _ = answer.send(held);
        }
        if waiting.is_empty() {
            self.confirmed.remove(key);
        }
    }

    pub(super) fn expire(&mut self, now: Moment) {
        if self.freed.is_empty() {
            return;
        }
        self.freed.retain(|_, waiting| {
            waiting.retain(|waiter| waiter.until > now);
            !waiting.is_empty()
        });
    }

    pub(super) fn wake_at(&self) -> Moment {
        self.freed.values().flatten().map(|waiter| waiter.until).min().unwrap_or(Moment::NEVER)
    }
}
