//! Who said when that it led or worked, and whether all that fits together.

mod book;

use super::word::Word;

pub(crate) use self::book::Book;

/// All terms of all leases and duties, as the nodes told of them.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Who led.
    pub(crate) leases: Book,
    /// Who ran which duty.
    pub(crate) duties: Book,
    /// How many times a node asked and heard yes, or worked, as far as it was reported.
    pub(crate) answers: u64,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { leases: Book::new("led"), duties: Book::new("ran it"), answers: 0 }
    }
}

impl Ledger {
    /// Writes down what a node said.
    pub(crate) fn note(&mut self, node: usize, name: &str, word: &Word) {
        match word {
            Word::Elected { lease, term, at } => self.leases.began(node, name, lease, *term, *at),
            Word::Started { duty, term, at } => self.duties.began(node, name, duty, *term, *at),
            Word::Held { lease, term, asked, until } => {
                self.answers += 1;
                self.leases.went_on(node, lease, *term, *asked, *until);
            }
            Word::Ran { duty, term, asked, until } => {
                self.answers += 1;
                self.duties.went_on(node, duty, *term, *asked, *until);
            }
            Word::Lost { lease, term, asked, why, expired, .. } => {
                self.leases.ended(node, lease, *term, *asked, why, *expired);
            }
            Word::Stopped { duty, term, why, expired } => {
                self.duties.ended(node, duty, *term, 0, why, *expired);
            }
            Word::Joined { .. } | Word::Ended { .. } | Word::Left | Word::Failed { .. } => {}
        }
    }

    /// The node is dead: all that it held is over with it.
    pub(crate) fn dead(&mut self, node: usize) {
        self.leases.dead(node);
        self.duties.dead(node);
    }

    /// All that can't be if at most one node leads a lease or runs a duty at any instant.
    pub(crate) fn faults(&self, name: impl Fn(usize) -> String) -> Vec<String> {
        let mut faults = self.leases.faults(&name);
        faults.extend(self.duties.faults(&name));
        faults
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
        assert!(faults(&words)[0].contains("twice at once"), "{:?}", faults(&words));
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
    fn a_duty_that_runs_twice_at_once_is_found() {
        let duty = || "projection/orders".to_owned();
        let started = |term, at| Word::Started { duty: duty(), term, at };
        let ran = |term, asked| Word::Ran { duty: duty(), term, asked, until: 90 };
        let stopped = |term| Word::Stopped {
            duty: duty(),
            term,
            why: "withdrawn".to_owned(),
            expired: false,
        };
        let mut words =
            vec![(1, started(1, 10)), (1, ran(1, 30)), (1, stopped(1)), (2, started(2, 31))];
        assert_eq!(faults(&words), Vec::<String>::new());
        // The last word of the old run comes late, and tells that it went on for too long.
        words.insert(3, (1, ran(1, 32)));
        assert!(faults(&words)[0].contains("twice at once"), "{:?}", faults(&words));
    }

    #[test]
    fn words_may_arrive_out_of_order() {
        let words = [(2, elected(2, 31)), (1, elected(1, 10)), (1, lost(1, 30, false))];
        assert_eq!(faults(&words), Vec::<String>::new());
    }
}
