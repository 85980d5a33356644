//! Who said when that it led, and whether all that fits together.

use std::collections::BTreeMap;
use std::time::Duration;

use super::word::Word;

/// All terms of all leases, as the nodes told of them.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    leases: BTreeMap<String, BTreeMap<u64, Stint>>,
    /// What can't be, noticed as it was told.
    faults: Vec<String>,
    /// How many times a node asked and heard yes, as far as it was reported.
    pub(crate) answers: u64,
}

/// One term of one lease.
#[derive(Clone, Debug)]
pub(crate) struct Stint {
    /// The place of the node in the fleet.
    pub(crate) node: usize,
    /// It led no later than this.
    pub(crate) first: u64,
    /// It still led at this or later.
    pub(crate) last: u64,
    /// Until when it would have believed so, as it said last.
    pub(crate) until: u64,
    /// Why it ended, if it is known to have.
    pub(crate) end: Option<String>,
    /// Whether it went on believing up to `until`, as far as anybody can tell.
    trusted_to_the_end: bool,
}

impl Ledger {
    /// Writes down what a node said. Only what changes is returned.
    pub(crate) fn note(&mut self, node: usize, name: &str, word: &Word) {
        match word {
            Word::Elected { lease, term, at } => self.elected(node, name, lease, *term, *at),
            Word::Held { lease, term, asked, until } => {
                self.answers += 1;
                if let Some(stint) = self.stint(node, lease, *term) {
                    stint.last = stint.last.max(*asked);
                    stint.until = *until;
                }
            }
            Word::Lost { lease, term, asked, why, expired, .. } => {
                if let Some(stint) = self.stint(node, lease, *term) {
                    stint.last = stint.last.max(*asked);
                    stint.end = Some(why.clone());
                    stint.trusted_to_the_end = *expired;
                }
            }
            Word::Joined { .. } | Word::Ended { .. } | Word::Left | Word::Failed { .. } => {}
        }
    }

    /// The node is dead: all that it held is over with it.
    pub(crate) fn dead(&mut self, node: usize) {
        for stint in self.leases.values_mut().flat_map(BTreeMap::values_mut) {
            if stint.node == node && stint.end.is_none() {
                stint.end = Some("killed".to_owned());
            }
        }
    }

    /// The latest term of a lease.
    pub(crate) fn latest(&self, lease: &str) -> Option<(u64, &Stint)> {
        let (term, stint) = self.leases.get(lease)?.last_key_value()?;
        Some((*term, stint))
    }

    /// The latest term of a lease, if it isn't over as far as its node has said.
    pub(crate) fn current(&self, lease: &str) -> Option<(u64, &Stint)> {
        self.latest(lease).filter(|(_, stint)| stint.end.is_none())
    }

    /// This very term.
    pub(crate) fn term(&self, lease: &str, term: u64) -> Option<&Stint> {
        self.leases.get(lease)?.get(&term)
    }

    /// How many terms there were.
    pub(crate) fn terms(&self) -> usize {
        self.leases.values().map(BTreeMap::len).sum()
    }

    /// All that can't be if at most one node leads at any instant.
    pub(crate) fn faults(&self, name: impl Fn(usize) -> String) -> Vec<String> {
        let mut faults = self.faults.clone();
        for (lease, terms) in &self.leases {
            for (earlier, later) in terms.iter().zip(terms.iter().skip(1)) {
                let ((old, one), (new, other)) = (earlier, later);
                let end = if one.trusted_to_the_end { one.until.max(one.last) } else { one.last };
                if other.first <= end {
                    faults.push(format!(
                        "{lease}: two leaders at once: {} in term {old} still believed that it \
                         led {} after {} led in term {new}",
                        name(one.node),
                        crate::span::text(Duration::from_nanos(end - other.first)),
                        name(other.node),
                    ));
                }
            }
        }
        faults
    }

    fn elected(&mut self, node: usize, name: &str, lease: &str, term: u64, at: u64) {
        let terms = self.leases.entry(lease.to_owned()).or_default();
        if let Some((known, stint)) = terms.range(term..).next() {
            let fault = if *known == term {
                format!("{lease}: term {term} was given twice, the second time to {name}")
            } else if stint.first <= at {
                format!("{lease}: {name} was elected in term {term} after term {known}")
            } else {
                // Words of different processes may arrive out of order; their stamps decide.
                String::new()
            };
            self.faults.extend((!fault.is_empty()).then_some(fault));
        }
        let fresh =
            Stint { node, first: at, last: at, until: at, end: None, trusted_to_the_end: false };
        terms.entry(term).or_insert(fresh);
    }

    fn stint(&mut self, node: usize, lease: &str, term: u64) -> Option<&mut Stint> {
        self.leases.get_mut(lease)?.get_mut(&term).filter(|stint| stint.node == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elected(term: u64, at: u64) -> Word {
        Word::Elected { lease: "a".to_owned(), term, at }
    }

    fn held(term: u64, asked: u64, until: u64) -> Word {
        Word::Held { lease: "a".to_owned(), term, asked, until }
    }

    fn lost(term: u64, asked: u64, expired: bool) -> Word {
        let why = "resigned".to_owned();
        Word::Lost { lease: "a".to_owned(), term, asked, at: asked, why, expired }
    }

    fn faults(words: &[(usize, Word)]) -> Vec<String> {
        let mut ledger = Ledger::default();
        for (node, word) in words {
            ledger.note(*node, &format!("node-{node}"), word);
        }
        ledger.faults(|node| format!("node-{node}"))
    }

    #[test]
    fn one_after_the_other_is_fine() {
        let words = [
            (1, elected(1, 10)),
            (1, held(1, 20, 90)),
            (1, lost(1, 30, false)),
            (2, elected(2, 31)),
        ];
        assert_eq!(faults(&words), Vec::<String>::new());
    }

    #[test]
    fn an_old_leader_that_goes_on_is_found() {
        let words = [(1, elected(1, 10)), (2, elected(2, 31)), (1, held(1, 40, 90))];
        assert!(faults(&words)[0].contains("two leaders"), "{:?}", faults(&words));
    }

    #[test]
    fn trust_that_outlasts_the_next_election_is_found_even_if_nobody_asked() {
        let words = [
            (1, elected(1, 10)),
            (1, held(1, 20, 90)),
            (2, elected(2, 80)),
            (1, lost(1, 20, true)),
        ];
        assert!(faults(&words)[0].contains("node-1"), "{:?}", faults(&words));
    }

    #[test]
    fn terms_that_repeat_or_go_down_are_found() {
        let twice = [(1, elected(1, 10)), (1, lost(1, 11, false)), (2, elected(1, 20))];
        assert!(faults(&twice)[0].contains("twice"), "{:?}", faults(&twice));
        let down = [(1, elected(2, 10)), (1, lost(2, 11, false)), (2, elected(1, 20))];
        assert!(faults(&down)[0].contains("after term 2"), "{:?}", faults(&down));
    }

    #[test]
    fn words_may_arrive_out_of_order() {
        let words = [(2, elected(2, 31)), (1, elected(1, 10)), (1, lost(1, 30, false))];
        assert_eq!(faults(&words), Vec::<String>::new());
    }
}
