//! How the store fares, so that each change of it is reported once.

use incumbent_core::store::{Lane, StoreError};

use super::lanes::Landed;

pub(super) struct Health {
    node: String,
    failing: [bool; 3],
    last: Option<String>,
}

impl Health {
    pub(super) fn new(node: &str) -> Self {
        Self { node: node.to_owned(), failing: [false; 3], last: None }
    }

    /// What the store said last, if it fails.
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    pub(super) fn note(&mut self, landed: &Landed) {
        let latency = landed.latency.as_micros() as u64;
        let error = landed.answers.iter().find_map(|(_, answer)| answer.as_ref().err());
        let action = action(landed.lane);
        let node = self.node.as_str();
        if error.is_none() {
            tracing::trace!(node, action, latency_us = latency, "the store answered");
        }
        let failing = match landed.lane {
            Lane::Beat => &mut self.failing[0],
            Lane::Change => &mut self.failing[1],
            Lane::Watch => &mut self.failing[2],
        };
        match (error, *failing) {
            (Some(StoreError { kind, message }), false) => {
                *failing = true;
                tracing::warn!(node, action, latency_us = latency, ?kind, error = %message, "the store fails");
            }
            (Some(StoreError { kind, message }), true) => {
                tracing::debug!(node, action, latency_us = latency, ?kind, error = %message, "the store still fails");
            }
            (None, true) => {
                *failing = false;
                tracing::info!(node, action, latency_us = latency, "the store answers again");
            }
            (None, false) => {}
        }
        match error {
            Some(error) => self.last = Some(error.message.clone()),
            None if self.failing == [false; 3] => self.last = None,
            None => {}
        }
    }
}

fn action(lane: Lane) -> &'static str {
    match lane {
        Lane::Beat => "beat",
        Lane::Change => "change",
        Lane::Watch => "watch",
    }
}
