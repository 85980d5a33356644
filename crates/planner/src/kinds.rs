//! Kinds of duties. What is found out about one duty of a kind holds for all of them: so a search
//! that was in vain once isn't made again.

use std::collections::HashMap;

use crate::index::{ApartAt, ClassAt, Column, DutyAt, KindAt, NodeAt, PinAt};
use crate::problem::Problem;

/// The kind of every duty: duties of one kind differ in nothing but their names and where they
/// run, as far as it matters to where they fit and are welcome.
#[derive(Debug)]
pub(crate) struct Kinds {
    of: Column<DutyAt, KindAt>,
    count: usize,
}

/// All that rules and preferences ask about a duty. What they come to ask must be added here.
#[derive(PartialEq, Eq, Hash)]
struct KindKey<'p> {
    class: ClassAt,
    weight: u64,
    apart: Option<ApartAt>,
    pin: Option<(bool, PinAt)>,
    avoid: &'p [NodeAt],
    /// The node that it may stay on although nothing new comes there.
    closed: Option<NodeAt>,
}

impl Kinds {
    pub(crate) fn new(problem: &Problem<'_>) -> Self {
        let mut known: HashMap<KindKey<'_>, KindAt> = HashMap::new();
        let mut plain: HashMap<(ClassAt, u64), KindAt> = HashMap::new();
        let mut count = 0;
        let mut of = Vec::with_capacity(problem.duties.len());
        for (duty, facts) in problem.duties.iter() {
            let next = || {
                count += 1;
                crate::index::At::at(count - 1)
            };
            let closed = problem.running[duty].filter(|node| !problem.nodes[*node].open);
            let (class, weight) = (facts.class, facts.weight);
            if facts.is_plain() && closed.is_none() {
                of.push(*plain.entry((class, weight)).or_insert_with(next));
                continue;
            }
            let pin = facts.pin.map(|pin| (pin.required, pin.name));
            let (apart, avoid) = (facts.apart, facts.avoid.as_slice());
            let key = KindKey { class, weight, apart, pin, avoid, closed };
            of.push(*known.entry(key).or_insert_with(next));
        }
        Self { of: of.into(), count }
    }

    pub(crate) fn of(&self, duty: DutyAt) -> KindAt {
        self.of[duty]
    }

    /// A value for each kind.
    pub(crate) fn column<T: Clone>(&self, value: T) -> Column<KindAt, T> {
        Column::filled(self.count, value)
    }
}
