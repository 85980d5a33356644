//! Whose lock a write waits for, asked where the server can tell.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use incumbent_core::Moment;
use incumbent_core::store::{Exchange, Lane, Obstacle, Write};

use crate::driver::{clock, thread};
use crate::open::OpenStore;

/// A write that takes so long may wait for somebody. Locks are waited for a second.
const SLOW: Duration = Duration::from_millis(400);

/// No more often is a server asked, and so long counts what it said.
const PAUSE: Duration = Duration::from_secs(10);

/// How long the answer may take.
const LONGEST: Duration = Duration::from_secs(5);

/// What is known of locks in one store.
#[derive(Debug, Default)]
pub(crate) struct LockSight(Mutex<LocksSeen>);

#[derive(Debug, Default)]
struct LocksSeen {
    asked: Option<Moment>,
    /// What was found then.
    found: Vec<Obstacle>,
}

impl LockSight {
    /// Whether it is time to ask again; says so once.
    fn is_due(&self, now: Moment) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = seen.asked.is_none_or(|asked| now.since(asked) >= PAUSE);
        if due {
            *seen = LocksSeen { asked: Some(now), found: Vec::new() };
        }
        due
    }

    fn find(&self, found: &[Obstacle]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.found = found.to_vec();
    }

    fn found(&self, now: Moment) -> Vec<Obstacle> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = seen.asked.is_some_and(|asked| now.since(asked) < PAUSE);
        if fresh { seen.found.clone() } else { Vec::new() }
    }
}

/// One exchange that writes, and may have to wait for somebody.
pub(crate) struct LockWait {
    keys: Vec<String>,
    since: Moment,
    asked: bool,
}

impl LockWait {
    /// Beats wait for nobody, and reads for no lock.
    pub(crate) fn of(lane: Lane, exchange: &Exchange) -> Option<Self> {
        let waits = lane == Lane::Change && !exchange.writes.is_empty();
        let key = |write: &Write| write.key().as_str().to_owned();
        let keys = || exchange.writes.iter().map(key).collect();
        waits.then(|| Self { keys: keys(), since: clock::now(), asked: false })
    }

    /// When it will have taken so long that somebody may be in the way.
    pub(crate) fn ask_at(&self) -> Moment {
        if self.asked { Moment::NEVER } else { self.since + SLOW }
    }

    /// Asks who is in the way, beside everything else, and logs it.
    pub(crate) fn ask(&mut self, store: &OpenStore, cluster: &str) {
        self.asked = true;
        if !store.sight.is_due(clock::now()) {
            return;
        }
        let (store, cluster, keys) = (store.clone(), cluster.to_owned(), self.keys.clone());
        let asking = async move {
            let until = clock::now() + LONGEST;
            let found = tokio::select! {
                found = store.obstacles() => found,
                () = thread::sleep_until(until) => return,
            };
            store.sight.find(&found);
            for obstacle in concerning(&keys, found) {
                let key = keys.first().map_or("", String::as_str);
                tracing::warn!(
                    cluster,
                    action = "change",
                    key,
                    %obstacle,
                    "a write waits for somebody else's lock"
                );
            }
        };
        // Without it only the explanation is missing.
        let _ = thread::spawn(asking);
    }

    /// Who is in the way, for the text of an error; nothing if that isn't known.
    pub(crate) fn told(&self, store: &OpenStore) -> String {
        if self.asked { told(store, &self.keys) } else { String::new() }
    }
}

/// Who was in the way of these records a moment ago, as the end of a sentence; nothing if that
/// isn't known.
pub(crate) fn told(store: &OpenStore, keys: &[String]) -> String {
    concerning(keys, store.sight.found(clock::now())).map(|it| format!("; {it}")).collect()
}

/// Those that may be what writes of these records wait for.
fn concerning(keys: &[String], found: Vec<Obstacle>) -> impl Iterator<Item = Obstacle> {
    found
        .into_iter()
        .filter(move |obstacle| obstacle.record.as_ref().is_none_or(|(_, key)| keys.contains(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o37_a_server_is_asked_now_and_then_and_what_it_said_is_forgotten() {
        let sight = LockSight::default();
        let start = Moment::START;
        assert!(sight.is_due(start));
        sight.find(&[Obstacle::new(None, "somebody")]);
        let soon = start + Duration::from_secs(9);
        assert!(!sight.is_due(soon) && sight.found(soon).len() == 1);
        let later = start + PAUSE;
        assert_eq!(sight.found(later), []);
        assert!(sight.is_due(later));
    }
}
