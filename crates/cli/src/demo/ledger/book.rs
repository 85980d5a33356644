use std::collections::BTreeMap;
use std::time::Duration;

/// The terms of leases, or of duties, by their names.
#[derive(Debug)]
pub(crate) struct Book {
    terms: BTreeMap<String, BTreeMap<u64, Stint>>,
    /// What can't be, noticed as it was told.
    faults: Vec<String>,
    /// What a node does in a term, in the past.
    did: &'static str,
}

/// One term.
#[derive(Clone, Debug)]
pub(crate) struct Stint {
    /// The place of the node in the fleet.
    pub(crate) node: usize,
    /// It had begun no later than this.
    pub(crate) first: u64,
    /// It still went on at this or later.
    pub(crate) last: u64,
    /// Until when the node would have believed in it, as it said last.
    pub(crate) until: u64,
    /// Why it ended, if it is known to have.
    pub(crate) end: Option<String>,
    /// Whether the node went on believing up to `until`, as far as anybody can tell.
    trusted_to_the_end: bool,
}

impl Book {
    /// An empty book about those who did this.
    pub(super) fn new(did: &'static str) -> Self {
        Self { terms: BTreeMap::new(), faults: Vec::new(), did }
    }

    pub(super) fn began(&mut self, node: usize, name: &str, what: &str, term: u64, at: u64) {
        let terms = self.terms.entry(what.to_owned()).or_default();
        if let Some((known, stint)) = terms.range(term..).next() {
            let fault = if *known == term {
                format!("{what}: term {term} was given twice, the second time to {name}")
            } else if stint.first <= at {
                format!("{what}: {name} was given term {term} after term {known}")
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

    pub(super) fn went_on(&mut self, node: usize, what: &str, term: u64, asked: u64, until: u64) {
        if let Some(stint) = self.stint(node, what, term) {
            stint.last = stint.last.max(asked);
            stint.until = until;
        }
    }

    pub(super) fn ended(
        &mut self,
        node: usize,
        what: &str,
        term: u64,
        asked: u64,
        why: &str,
        expired: bool,
    ) {
        if let Some(stint) = self.stint(node, what, term) {
            stint.last = stint.last.max(asked);
            stint.end = Some(why.to_owned());
            stint.trusted_to_the_end = expired;
        }
    }

    pub(super) fn dead(&mut self, node: usize) {
        for stint in self.terms.values_mut().flat_map(BTreeMap::values_mut) {
            if stint.node == node && stint.end.is_none() {
                stint.end = Some("killed".to_owned());
            }
        }
    }

    /// The latest term.
    pub(crate) fn latest(&self, what: &str) -> Option<(u64, &Stint)> {
        let (term, stint) = self.terms.get(what)?.last_key_value()?;
        Some((*term, stint))
    }

    /// The latest term, if it isn't over as far as its node has said.
    pub(crate) fn current(&self, what: &str) -> Option<(u64, &Stint)> {
        self.latest(what).filter(|(_, stint)| stint.end.is_none())
    }

    /// This very term.
    pub(crate) fn term(&self, what: &str, term: u64) -> Option<&Stint> {
        self.terms.get(what)?.get(&term)
    }

    /// How many terms there were.
    pub(crate) fn terms(&self) -> usize {
        self.terms.values().map(BTreeMap::len).sum()
    }

    pub(super) fn faults(&self, name: impl Fn(usize) -> String) -> Vec<String> {
        let mut faults = self.faults.clone();
        for (what, terms) in &self.terms {
            for ((old, one), (new, other)) in terms.iter().zip(terms.iter().skip(1)) {
                let end = if one.trusted_to_the_end { one.until.max(one.last) } else { one.last };
                if other.first <= end {
                    let (earlier, later) = (name(one.node), name(other.node));
                    let over = crate::span::text(Duration::from_nanos(end - other.first));
                    let did = self.did;
                    faults.push(format!(
                        "{what}: twice at once: {earlier} still {did} in term {old} {over} after \
                         {later} {did} in term {new}"
                    ));
                }
            }
        }
        faults
    }

    fn stint(&mut self, node: usize, what: &str, term: u64) -> Option<&mut Stint> {
        self.terms.get_mut(what)?.get_mut(&term).filter(|stint| stint.node == node)
    }
}
