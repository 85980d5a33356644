//! 2. A lease's term never goes down and never repeats for two holders; where the store forgot, no
//!    node that could know takes one that was given before the loss.

use std::collections::BTreeMap;

use incumbent_core::records::LeaseRecord;
use incumbent_core::store::Key;
use incumbent_core::{ElectionEvent, MemberId};

use super::knowledge::{Forgotten, Knowledge};
use super::{Invariant, Landing, Verdict};

/// How far terms go on above the highest seen after a loss.
const JUMP: u64 = 1000;

#[derive(Default)]
pub(super) struct Terms {
    highest: BTreeMap<Key, u64>,
    holders: BTreeMap<(Key, u64), MemberId>,
    /// The highest term that was ever given.
    given: BTreeMap<String, u64>,
    knowledge: Knowledge,
}

impl Terms {
    /// A lease was taken by a request that was sent after the store had forgotten something of it.
    fn taken_after_loss(&mut self, node: usize, record: &LeaseRecord) -> Verdict {
        let (name, term) = (record.name.as_str(), record.term);
        let Some(seen) = self.knowledge.knew(node, name) else { return Ok(()) };
        let given = self.given.get(name).copied().unwrap_or(0);
        // Nobody can stay above terms further than the jump above what it has seen.
        if term <= seen || (term <= given && given < seen + JUMP) {
            return Err(format!("term {term} of {name} was given before the store forgot it"));
        }
        self.knowledge.mended(name);
        Ok(())
    }
}

impl Invariant for Terms {
    fn experienced(&mut self, node: usize, event: &ElectionEvent, _: bool) -> Verdict {
        self.knowledge.experienced(node, event);
        Ok(())
    }

    fn started(&mut self, node: usize) {
        self.knowledge.started(node);
    }

    fn forgot(&mut self, forgotten: &Forgotten) {
        self.knowledge.forgot(forgotten);
        let there = |key: &Key| forgotten.terms.iter().find(|(name, _)| is_under(key, name));
        for (key, highest) in &mut self.highest {
            let term = there(key).map_or(0, |(_, term)| *term);
            if term < *highest {
                *highest = term;
                self.holders.retain(|(other, given), _| other != key || *given <= term);
            }
        }
    }

    fn applied(&mut self, Landing { now, change, sender, processes }: Landing<'_>) -> Verdict {
        self.knowledge.applied(now, change, sender);
        let key = &change.key;
        if !key.as_str().starts_with("lease/") {
            return Ok(());
        }
        if change.after.is_none() {
            return Err(format!("{key} was deleted, and its term with it"));
        }
        let unreadable = || format!("{key} can't be read");
        let record = change.after::<LeaseRecord>().ok_or_else(unreadable)?;
        let highest = self.highest.entry(key.clone()).or_insert(0);
        if record.term < *highest {
            return Err(format!("{key} went from term {highest} down to {}", record.term));
        }
        *highest = record.term;
        let before = change.before::<LeaseRecord>();
        let before = before.as_ref().and_then(|before| before.holder.as_ref());
        let taken = record.holder.is_some() && before != record.holder.as_ref();
        if let (Some(sender), true) = (sender, taken) {
            let lost = self.knowledge.loss(&record.name).map(|loss| loss.at);
            let clock = processes.get(sender.node).map(|process| &process.clock);
            if let (Some(lost), Some(clock)) = (lost, clock)
                && sender.sent > clock.at(lost)
            {
                self.taken_after_loss(sender.node, &record)?;
            }
            let given = self.given.entry(record.name.clone()).or_insert(0);
            *given = record.term.max(*given);
        }
        if let Some(holder) = record.holder.as_ref().filter(|_| taken) {
            let known =
                self.holders.entry((key.clone(), record.term)).or_insert(holder.member.clone());
            if *known != holder.member {
                return Err(format!("term {} of {key} has two holders", record.term));
            }
        }
        Ok(())
    }
}

fn is_under(key: &Key, name: &str) -> bool {
    key.as_str() == format!("lease/{name}")
}
