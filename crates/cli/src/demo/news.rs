//! What is worth telling.

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent::{Moment, clock};

use crate::tone::Tone;

/// Duties that start within this time are told of in one line.
const GATHERING: Duration = Duration::from_millis(150);

/// Something worth telling.
#[derive(Clone, Debug)]
pub(crate) struct News {
    /// Since the demo began.
    pub(crate) at: Duration,
    /// What it is like.
    pub(crate) tone: Tone,
    /// In words.
    pub(crate) text: String,
}

/// Duties that have just started, to be told of together: one line for those that took the same
/// way.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    since: Option<Moment>,
    ways: BTreeMap<(String, Option<String>), Vec<String>>,
}

impl Gathered {
    /// Adds one that started on a node, and ran on another before.
    pub(super) fn add(&mut self, duty: &str, to: String, from: Option<String>) {
        self.since.get_or_insert_with(clock::now);
        self.ways.entry((to, from)).or_default().push(duty.to_owned());
    }

    /// How long to wait for more; nothing if none was added.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.since.map(|since| (since + GATHERING).since(clock::now()))
    }

    /// The next line, once it is time to tell.
    pub(super) fn line(&mut self) -> Option<String> {
        if self.patience()? > Duration::ZERO {
            return None;
        }
        let ((to, from), mut duties) = self.ways.pop_first()?;
        if self.ways.is_empty() {
            self.since = None;
        }
        duties.sort();
        let duties = duties.join(", ");
        Some(match from {
            None => format!("{to} runs {duties}"),
            Some(from) if from == to => format!("{to} runs {duties} again"),
            Some(from) => format!("{to} runs {duties}, after {from}"),
        })
    }
}
