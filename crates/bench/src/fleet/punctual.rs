//! A store that notes how late beats are: from the moment in which one was due to the answer to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, Wake, Write};
use incumbent::{Moment, OpenStore, clock};
use serde_json::Value;

#[derive(Clone)]
pub(super) struct Punctual {
    inner: OpenStore,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Default)]
struct Notes {
    /// When the next beat of each member is due, by the member's key.
    due: BTreeMap<String, Moment>,
    /// Microseconds from then until the answer.
    late: Vec<u64>,
}

/// A beat that is sent: the member's key, and how long after this the next is due.
type Sent = (String, Duration);

impl Punctual {
    pub(super) fn new(inner: OpenStore) -> Self {
        Self { inner, notes: Arc::default() }
    }

    /// How late beats were since this was last asked, in microseconds.
    pub(super) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner).late)
    }

    fn note(&self, beats: Vec<Sent>, sent: Moment, answered: Moment) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, next) in beats {
            if let Some(due) = notes.due.insert(key, sent + next) {
                // A beat may be early, where something has to be told at once.
                notes.late.push(u64::try_from(answered.since(due).as_micros()).unwrap_or(u64::MAX));
            }
        }
    }
}

impl Store for Punctual {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(async move {
            let beats = beats(&exchange);
            let sent = clock::now();
            let answer = self.inner.exchange(cluster, lane, exchange).await;
            if lane == Lane::Beat {
                self.note(beats, sent, clock::now());
            }
            answer
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.inner.hints(cluster, wake)
    }
}

/// The beats in an exchange: no other record says when the next of its kind is due.
fn beats(exchange: &Exchange) -> Vec<Sent> {
    let beat = |write: &Write| {
        let Write::Put(put) = write else { return None };
        let record: Value = serde_json::from_slice(&put.value).ok()?;
        let next = record.get("due_ms")?.as_u64()?;
        Some((put.key.as_str().to_owned(), Duration::from_millis(next)))
    };
    exchange.writes.iter().filter_map(beat).collect()
}

#[cfg(test)]
mod tests {
    use incumbent::blocking::Wait as _;

    use super::*;

    #[test]
    fn lateness_is_from_when_a_beat_was_due_to_its_answer() {
        let store = Punctual::new(incumbent::open("solo:").wait().unwrap());
        let at = |millis| Moment::START + Duration::from_millis(millis);
        let beat = || vec![("a".to_owned(), Duration::from_millis(100))];
        store.note(beat(), at(1000), at(1001));
        assert_eq!(store.take(), [0; 0], "nobody said when the first was due");
        store.note(beat(), at(1103), at(1110));
        store.note(beat(), at(1150), at(1151));
        assert_eq!(store.take(), [10_000, 0]);
    }
}
