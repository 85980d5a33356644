//! Writes down which duties run where, and notices when one runs twice at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use incumbent::{Duty, WorkResult};

use super::until;

#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    running: BTreeMap<String, String>,
    /// The fence under which each ran last.
    fences: BTreeMap<String, u64>,
    starts: BTreeMap<String, u32>,
    mistakes: Vec<String>,
}

/// A duty that runs, until this is dropped.
pub struct Entry {
    ledger: Ledger,
    name: String,
}

impl Ledger {
    pub fn enter(&self, node: &str, duty: &Duty) -> Entry {
        let name = duty.name().to_owned();
        let mut entries = self.entries();
        if let Some(other) = entries.running.insert(name.clone(), node.to_owned()) {
            entries.mistakes.push(format!("{name} runs on {other} and on {node}"));
        }
        let fence = duty.term();
        if entries.fences.insert(name.clone(), fence).is_some_and(|last| last > fence) {
            entries.mistakes.push(format!("the fence of {name} went back to {fence}"));
        }
        *entries.starts.entry(name.clone()).or_default() += 1;
        Entry { ledger: self.clone(), name }
    }

    /// Work that runs until it is told to stop.
    pub async fn run(self, node: String, duty: Duty) -> WorkResult {
        let _entry = self.enter(&node, &duty);
        duty.stopped().await;
        Ok(())
    }

    pub fn running(&self) -> BTreeMap<String, String> {
        self.entries().running.clone()
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
        self.ledger.entries().running.remove(&self.name);
    }
}
