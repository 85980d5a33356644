use std::collections::BTreeMap;
use std::fmt;

use super::history::{Entry, History, Loss};

/// What the histories say when all is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Terms that somebody led in.
    pub terms: usize,
    /// Questions that were answered with yes.
    pub yes: usize,
    /// The shortest time, in nanoseconds, from the end of one trust to the beginning of the next.
    pub closest: u64,
}

/// Histories that should not have been possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two trusted at one instant.
    Together(Trust, Trust),
    /// A term was not above the one before it.
    Order(Trust, Trust),
    /// A process was told yes after it was told no, or that it had lost.
    Resurrected {
        /// Which process.
        process: String,
        /// In which term.
        term: u64,
    },
}

/// For how long somebody surely trusted that it led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Which process.
    pub process: String,
    /// In which term.
    pub term: u64,
    /// The beginning of the first question answered with yes.
    pub began_after: u64,
    /// It surely did not begin after this: the end of the first question answered with yes.
    pub began_by: u64,
    /// It surely did not end before this: the beginning of the last such question, or the end of
    /// trust if that ran out.
    pub lasted_to: u64,
}

/// Lays all histories side by side.
///
/// A yes was true at some moment between the beginning of the question and the answer. In one
/// term all moments between two yeses were yeses too, because a no is final. So what is found
/// here is certain, however slow or paused a process was while it asked.
///
/// # Errors
/// If two trusted at one instant, terms did not grow, or a no was not final.
pub fn check(histories: &[History]) -> Result<Account, Violation> {
    let mut yes = 0;
    let mut trusts: Vec<Trust> = Vec::new();
    for history in histories {
        yes += read(history, &mut trusts)?;
    }
    for (at, one) in trusts.iter().enumerate() {
        for other in trusts.iter().skip(at + 1) {
            if overlap(one, other) {
                return Err(Violation::Together(one.clone(), other.clone()));
            }
            let (lower, higher) = if one.term < other.term { (one, other) } else { (other, one) };
            // A question that took long says little about when the term began.
            if lower.term == higher.term || higher.began_by < lower.began_after {
                return Err(Violation::Order(lower.clone(), higher.clone()));
            }
        }
    }
    trusts.sort_by_key(|trust| trust.term);
    let gaps = trusts.iter().zip(trusts.iter().skip(1));
    let closest = gaps.map(|(one, next)| next.began_by.saturating_sub(one.lasted_to)).min();
    Ok(Account { terms: trusts.len(), yes, closest: closest.unwrap_or(u64::MAX) })
}

fn overlap(one: &Trust, other: &Trust) -> bool {
    one.began_by < other.lasted_to && other.began_by < one.lasted_to
}

/// Reads the trusts of one process; says how many yeses there were.
fn read(history: &History, trusts: &mut Vec<Trust>) -> Result<usize, Violation> {
    let mut terms: BTreeMap<u64, Term> = BTreeMap::new();
    let mut yes = 0;
    for entry in &history.entries {
        match *entry {
            // Who was elected trusts only once it was told yes.
            Entry::Elected { .. } => {}
            Entry::Asked { before, after, term, held: true, until } => {
                yes += 1;
                let first = Term { began_after: before, began_by: after, ..Term::default() };
                let known = terms.entry(term).or_insert(first);
                if known.over {
                    let process = history.process.clone();
                    return Err(Violation::Resurrected { process, term });
                }
                known.lasted_to = before;
                known.until = known.until.max(until);
            }
            Entry::Asked { term, held: false, .. } => {
                if let Some(known) = terms.get_mut(&term) {
                    known.over = true;
                }
            }
            Entry::Lost { term, why, .. } => {
                if let Some(known) = terms.get_mut(&term) {
                    known.over = true;
                    known.ran_out = why == Loss::CannotTell;
                }
            }
        }
    }
    trusts.extend(terms.into_iter().map(|(term, known)| Trust {
        process: history.process.clone(),
        term,
        began_after: known.began_after,
        began_by: known.began_by,
        lasted_to: if known.ran_out { known.lasted_to.max(known.until) } else { known.lasted_to },
    }));
    Ok(yes)
}

#[derive(Default)]
struct Term {
    began_after: u64,
    began_by: u64,
    lasted_to: u64,
    until: u64,
    over: bool,
    ran_out: bool,
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds =
            |nanos: u64| format!("{}.{:06}", nanos / 1_000_000_000, nanos / 1000 % 1_000_000);
        let Self { process, term, .. } = self;
        let (from, to) = (seconds(self.began_by), seconds(self.lasted_to));
        write!(f, "{process} in term {term} from {from} at the latest to {to} at least")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Together(one, other) => write!(f, "two trusted together: {one}, and {other}"),
            Self::Order(one, other) => write!(f, "terms did not grow: {one}, then {other}"),
            Self::Resurrected { process, term } => {
                write!(f, "{process} was told yes in term {term} after it was told no")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that asked at these moments and was told yes, each time trusted for 100 more.
    fn led(process: &str, term: u64, asked: &[u64]) -> History {
        let yes = |at: &u64| Entry::Asked {
            before: *at,
            after: *at + 1,
            term,
            held: true,
            until: *at + 100,
        };
        History { process: process.to_owned(), entries: asked.iter().map(yes).collect() }
    }

    fn ended(mut history: History, at: u64, term: u64, why: Loss) -> History {
        history.entries.push(Entry::Lost { at, term, why });
        history
    }

    #[test]
    fn one_after_another_is_fine() {
        let account = check(&[led("a", 1, &[10, 20, 30]), led("b", 2, &[40, 50])]).unwrap();
        assert_eq!(account, Account { terms: 2, yes: 5, closest: 11 });
        assert!(check(&[led("b", 2, &[40, 50]), led("a", 1, &[10, 20, 30])]).is_ok());
    }

    #[test]
    fn a_forged_overlap_is_found() {
        let found = check(&[led("a", 1, &[10, 20, 30]), led("b", 2, &[25, 50])]);
        assert!(matches!(found, Err(Violation::Together(..))), "{found:?}");
        // One yes in the middle of another's reign is enough, however long that reign began ago.
        let found = check(&[led("a", 1, &[10, 90]), led("b", 2, &[50])]);
        assert!(matches!(found, Err(Violation::Together(..))), "{found:?}");
        let reigns = [led("a", 1, &[10, 900]), led("b", 2, &[901, 910]), led("c", 3, &[500])];
        assert!(matches!(check(&reigns), Err(Violation::Together(..))));
    }

    #[test]
    fn trust_that_ran_out_counts_to_its_end() {
        // Paused at 30, trusted until 130: nobody may have led at 100.
        let paused = ended(led("a", 1, &[10, 30]), 500, 1, Loss::CannotTell);
        let found = check(&[paused.clone(), led("b", 2, &[100, 110])]);
        assert!(matches!(found, Err(Violation::Together(..))), "{found:?}");
        assert!(check(&[paused, led("b", 2, &[131, 140])]).is_ok());
        // Whoever resigned gave up the rest.
        let resigned = ended(led("a", 1, &[10, 30]), 32, 1, Loss::Other);
        assert!(check(&[resigned, led("b", 2, &[100, 110])]).is_ok());
    }

    #[test]
    fn a_paused_question_proves_no_overlap() {
        // Asked at 30, paused, answered at 500: when between the two the yes was true is open.
        let slow = Entry::Asked { before: 30, after: 500, term: 1, held: true, until: 60 };
        let slow = History { process: "a".to_owned(), entries: vec![slow] };
        assert!(check(&[slow.clone(), led("b", 2, &[100, 110])]).is_ok());
        // But it was true somewhere in there, and another led all that time.
        let found = check(&[slow, led("b", 2, &[20, 510])]);
        assert!(matches!(found, Err(Violation::Together(..))), "{found:?}");
    }

    #[test]
    fn terms_that_repeat_or_go_back_are_found() {
        for term in [1, 2] {
            let found = check(&[led("a", 2, &[10, 20]), led("b", term, &[30, 40])]);
            assert!(matches!(found, Err(Violation::Order(..))), "{found:?}");
        }
    }

    #[test]
    fn a_yes_after_a_no_is_found() {
        let lost = ended(led("a", 1, &[10]), 20, 1, Loss::Other);
        let mut history = lost;
        history.entries.extend(led("a", 1, &[30]).entries);
        assert!(matches!(check(&[history]), Err(Violation::Resurrected { .. })));
    }
}
