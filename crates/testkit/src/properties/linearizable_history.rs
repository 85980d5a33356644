use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Read, Version, Write,
};

use crate::linear::{Action, Content, Event, MOST_EVENTS, is_linearizable};
use crate::locked::locked;
use crate::violation::ensure;
use crate::{Context, Handle, Rng, Violation};

pub(super) const ABOUT: &str =
    "Concurrent reads, swaps and deletes of a record look as if done one after another";

const CLIENTS: usize = 4;
const STEPS: usize = 10;

/// What the clients of one round share.
struct Round {
    key: Key,
    clock: AtomicU64,
    contents: AtomicU32,
    history: Mutex<Vec<Event>>,
    versions: Mutex<BTreeMap<Version, Content>>,
    /// A create that is delivered twice may land after a delete and so be applied twice. That is
    /// the path's doing and not the store's, so there are no deletes behind faults.
    deletes: bool,
}

/// One client, with the last version that it has seen.
struct Client {
    round: Arc<Round>,
    handle: Handle,
    rng: Rng,
    seen: Option<(Version, Content)>,
}

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handles = context.open_many(CLIENTS).await?;
    for number in 0..context.rounds() {
        let round = Arc::new(Round {
            key: Key::new(&format!("lease/history-{number}")),
            clock: AtomicU64::new(0),
            contents: AtomicU32::new(0),
            history: Mutex::default(),
            versions: Mutex::default(),
            deletes: !context.faulty(),
        });
        let clients = handles.iter().map(|handle| {
            let (round, handle) = (Arc::clone(&round), handle.clone());
            Client { round, handle, rng: context.rng(), seen: None }.run()
        });
        context.race(clients.collect()).await?;
        context.quiet().await;
        let history = locked(&round.history).clone();
        ensure!(history.len() <= MOST_EVENTS, "a bug of the kit: the history is too long");
        ensure!(is_linearizable(&history), "no order explains this history: {}", shown(&history));
    }
    Ok(())
}

impl Client {
    async fn run(mut self) -> Result<(), Violation> {
        for _ in 0..STEPS {
            match self.rng.below(10) {
                0 if self.round.deletes => self.delete().await?,
                0..5 => self.swap().await?,
                _ => self.look().await?,
            }
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), Violation> {
        let sent = self.round.tick();
        let read = Read::Key { key: self.round.key.clone(), unless: None };
        let exchange = Exchange { writes: Vec::new(), reads: vec![read] };
        let Ok(reply) = self.handle.send(Lane::Watch, exchange).await? else { return Ok(()) };
        self.seen = match reply.reads.into_iter().next() {
            Some(Found::Record(record)) => {
                let content = parsed(&record.value)?;
                self.round.identify(&record.version, content)?;
                Some((record.version, content))
            }
            _ => None,
        };
        let content = self.seen.as_ref().map(|(_, content)| *content);
        self.round.note(sent, true, Action::Saw(content));
        Ok(())
    }

    async fn swap(&mut self) -> Result<(), Violation> {
        let content = self.round.contents.fetch_add(1, Ordering::SeqCst);
        let (expect, from) = match self.seen.clone() {
            Some((version, content)) => (Expect::Version(version), Some(content)),
            None => (Expect::Absent, None),
        };
        let value = format!("{{\"n\":{content}}}");
        let put = self.handle.replacement(&self.round.key, expect, value.as_bytes());
        let exchange = Exchange { writes: vec![Write::Put(put)], reads: Vec::new() };
        let lane = if self.rng.chance(0.5) { Lane::Change } else { Lane::Beat };
        let sent = self.round.tick();
        let action = Action::Swapped(from, content);
        match self.handle.send(lane, exchange).await? {
            Ok(reply) => {
                if let Some(Outcome::Applied(version)) = reply.writes.into_iter().next() {
                    self.round.note(sent, true, action);
                    self.round.identify(&version, content)?;
                    self.seen = Some((version, content));
                }
            }
            Err(error) if error.kind == ErrorKind::Unknown => self.round.note(sent, false, action),
            Err(_) => {}
        }
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Violation> {
        let writes = vec![Write::Delete(self.round.key.clone())];
        let sent = self.round.tick();
        match self.handle.send(Lane::Change, Exchange { writes, reads: Vec::new() }).await? {
            Ok(reply) if reply.writes == [Outcome::Deleted] => {
                self.seen = None;
                self.round.note(sent, true, Action::Deleted);
            }
            Err(error) if error.kind == ErrorKind::Unknown => {
                self.round.note(sent, false, Action::Deleted);
            }
            Ok(_) | Err(_) => {}
        }
        Ok(())
    }
}

impl Round {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, sent: u64, answered: bool, action: Action) {
        let answered = answered.then(|| self.tick());
        locked(&self.history).push(Event { sent, answered, action });
    }

    /// A version stands for one content, whoever sees it.
    fn identify(&self, version: &Version, content: Content) -> Result<(), Violation> {
        let mut versions = locked(&self.versions);
        let known = *versions.entry(version.clone()).or_insert(content);
        ensure!(known == content, "the version {version:?} was seen with two contents");
        Ok(())
    }
}

fn parsed(value: &[u8]) -> Result<Content, Violation> {
    let text = String::from_utf8_lossy(value);
    let number = text.trim_start_matches("{\"n\":").trim_end_matches('}').parse();
    number.map_err(|_| Violation::new(format!("found {text}, which nobody wrote")))
}

fn shown(history: &[Event]) -> String {
    let mut history = history.to_vec();
    history.sort_by_key(|event| event.sent);
    let lines = history.iter().map(|event| {
        let answered = event.answered.map_or("?".to_owned(), |answered| answered.to_string());
        format!("\n            {}..{answered} {:?}", event.sent, event.action)
    });
    lines.collect()
}
