//! Writes down which duties run where, and notices when one runs twice at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use incumbent::{Duty, WorkResult};

use super::until;

#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    running: BTreeMap<String, (String, Duty)>,
    /// The fence under which each ran last.
    fences: BTreeMap<String, u64>,
    starts: BTreeMap<String, u32>,
    mistakes: Vec<String>,
}

/// A duty that runs, until this is dropped.
pub struct Entry {
    ledger: Ledger,
    name: String,
    term: u64,
}

impl Ledger {
    pub fn enter(&self, node: &str, duty: &Duty) -> Entry {
        let name = duty.name().to_owned();
        let mut entries = self.entries();
        let here = (node.to_owned(), duty.clone());
        if let Some((other, before)) = entries.running.insert(name.clone(), here)
            // On a machine that stood still, work whose trust is over may not have been aborted
            // yet: it is only late.
            && before.is_held()
            && duty.is_held()
        {
            entries.mistakes.push(format!("{name} runs on {other} and on {node}"));
        }
        let fence = duty.number();
        if entries.fences.insert(name.clone(), fence).is_some_and(|last| last > fence) {
            entries.mistakes.push(format!("the fence of {name} went back to {fence}"));
        }
        *entries.starts.entry(name.clone()).or_default() += 1;
        Entry { ledger: self.clone(), name, term: fence }
    }

    /// Work that runs until it is told to stop.
    pub async fn run(self, node: String, duty: Duty) -> WorkResult {
        let _entry = self.enter(&node, &duty);
        duty.lost().await;
        Ok(())
    }

    pub fn running(&self) -> BTreeMap<String, String> {
        let running = |(name, (node, _)): (&String, &(String, Duty))| (name.clone(), node.clone());
        self.entries().running.iter().map(running).collect()
    }

    pub fn starts(&self, name: &str) -> u32 {
        self.entries().starts.get(name).copied().unwrap_or(0)
    }

    /// How many duties each node runs.
    pub fn loads(&self) -> BTreeMap<String, usize> {
        let mut loads = BTreeMap::new();
        for node in self.running().into_values() {
            *loads.entry(node).or_default() += 1;
        }
        loads
    }

    /// Waits until the nodes run so many duties each.
    pub async fn spread(&self, loads: &[(&str, usize)]) {
        let wanted = loads.iter().map(|(node, load)| ((*node).to_owned(), *load)).collect();
        until(&format!("{loads:?}"), || self.loads() == wanted).await;
    }

    /// Fails the test if anything ran twice at once.
    pub fn check(&self) {
        assert!(self.entries().mistakes.is_empty(), "{:?}", self.entries().mistakes);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut entries = self.ledger.entries();
        if entries.running.get(&self.name).is_some_and(|(_, duty)| duty.number() == self.term) {
            entries.running.remove(&self.name);
        }
    }
}
