//! What was said to one node and not taken in yet.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::datagram::{HintAddress, Saying};

/// So many waiters are kept until they are taken in; a node does that at its next turn.
const MOST: usize = 64;

/// What was said to one node and not taken in yet: bounded, however much is said.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    called: Notify,
    mail: Mutex<Mail>,
}

/// What was said.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// Something may have changed.
    pub(crate) changed: bool,
    /// These wait for what the node holds.
    pub(crate) waiters: Vec<HintAddress>,
}

impl Inbox {
    pub(crate) fn put(&self, saying: Saying) {
        let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        match saying {
            Saying::Changed => mail.changed = true,
            Saying::Waits(waiter) if mail.waiters.len() < MOST => mail.waiters.push(waiter),
            Saying::Waits(_) => return,
        }
        drop(mail);
        self.called.notify_one();
    }

    pub(crate) fn take(&self) -> Mail {
        std::mem::take(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something was said. Cancel-safe.
    pub(crate) async fn called(&self) {
        self.called.notified().await;
    }
}
