//! Which process could know what a store forgot.
//!
//! A node that has seen a term knows that it can't vanish. One that hasn't, a newcomer or one that
//! looked away while the lease changed hands, can't tell a store that forgot from one in which
//! nothing ever happened. What such a node does to a lease excuses what comes of it, until the trust
//! of before the loss is over.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use incumbent_core::records::{LeaseRecord, MemberRecord, MemberState};
use incumbent_core::{ElectionEvent, MemberId};

use crate::store::Applied;
use crate::world::Sender;

/// What a store has after it forgot, and who knows better.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    /// The term of each lease that is still there.
    pub(crate) terms: BTreeMap<String, u64>,
    /// Leases of which only those that know the holder can see what is lost: its member is gone and
    /// the lease isn't, or the other way round.
    pub(crate) torn: BTreeSet<String>,
    /// Leases that are lost, and whose holders' members aren't: they lead on.
    pub(crate) lasting: BTreeSet<String>,
    /// Which node had seen which holder of which lease alive, or was it.
    pub(crate) acquainted: BTreeSet<(usize, String, MemberId)>,
    /// What is different now.
    pub(crate) changes: Vec<Applied>,
    /// When it forgot.
    pub(crate) at: u64,
    /// Until when somebody may trust what is lost.
    pub(crate) until: u64,
}

/// One lease of which the store has lost something.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// Nodes that can see that it has.
    aware: BTreeSet<usize>,
    /// Nodes that had seen terms which were lost, and the highest that each had seen.
    above: BTreeMap<usize, u64>,
    /// One that can't has had its hands in it since.
    muddied: bool,
    /// When it was lost.
    pub(super) at: u64,
    until: u64,
}

#[derive(Default)]
pub(super) struct Knowledge {
    /// The highest term that each process has seen of each lease.
    seen: BTreeMap<(usize, String), u64>,
    losses: BTreeMap<String, Loss>,
    acquainted: BTreeSet<(usize, MemberId)>,
    /// Members of which the store shows an older beat than it did. Whoever saw that one last, and
    /// none since, takes it for the same, and the member for silent.
    went_back: BTreeSet<MemberId>,
    at: u64,
    until: u64,
}

impl Knowledge {
    pub(super) fn experienced(&mut self, node: usize, event: &ElectionEvent) {
        let (lease, term) = match event {
            ElectionEvent::Observed { lease, record: Some(record) } => (lease, record.term),
            ElectionEvent::Elected { lease, term, .. } => (lease, *term),
            _ => return,
        };
        let seen = self.seen.entry((node, lease.as_str().to_owned())).or_insert(0);
        *seen = term.max(*seen);
    }

    /// A process that starts knows nothing.
    pub(super) fn started(&mut self, node: usize) {
        self.seen.retain(|(other, _), _| *other != node);
        self.acquainted.retain(|(other, _)| *other != node);
        for loss in self.losses.values_mut() {
            loss.aware.remove(&node);
            loss.above.remove(&node);
        }
    }

    pub(super) fn forgot(&mut self, forgotten: &Forgotten) {
        (self.at, self.until) = (forgotten.at, forgotten.until);
        let back = forgotten.changes.iter().filter(|change| change.after.is_some());
        let ids = back.filter_map(|change| change.key.as_str().strip_prefix("member/"));
        self.went_back = ids.map(MemberId::new).collect();
        let acquainted = forgotten.acquainted.iter();
        self.acquainted = acquainted.map(|(node, _, id)| (*node, id.clone())).collect();
        let leases: BTreeSet<String> = self.seen.keys().map(|(_, lease)| lease.clone()).collect();
        for lease in leases {
            let term = forgotten.terms.get(&lease).copied().unwrap_or(0);
            let knows = |((node, name), seen): (&(usize, String), &u64)| {
                (*name == lease && *seen > term).then_some((*node, *seen))
            };
            let met = forgotten.acquainted.iter().filter(|(_, name, _)| *name == lease);
            let mut above: BTreeMap<usize, u64> = self.seen.iter().filter_map(knows).collect();
            let mut aware: BTreeSet<usize> = if forgotten.torn.contains(&lease) {
                met.map(|(node, _, _)| *node).collect()
            } else if above.is_empty() {
                self.seen.keys().filter(|(_, name)| *name == lease).map(|(node, _)| *node).collect()
            } else {
                above.keys().copied().collect()
            };
            // What an earlier loss has done isn't undone by another.
            let before = self.losses.get(&lease);
            let muddied = before.is_some_and(|loss| loss.muddied);
            if let Some(loss) = before.filter(|loss| forgotten.at < loss.until) {
                aware.retain(|node| loss.aware.contains(node));
            }
            let known = before.iter().flat_map(|loss| &loss.above);
            for (node, seen) in known.filter(|(_, seen)| **seen > term) {
                above.entry(*node).or_insert(*seen);
            }
            let lasts = forgotten.lasting.contains(&lease);
            let until = if lasts { u64::MAX } else { forgotten.until };
            let until = before.map_or(until, |loss| loss.until.max(until));
            self.losses.insert(lease, Loss { aware, above, muddied, at: forgotten.at, until });
        }
    }

    /// Notes a write by one that can't know.
    pub(super) fn applied(&mut self, now: u64, change: &Applied, sender: Option<Sender>) {
        let Some(node) = sender.map(|sender| sender.node) else { return };
        if self.until == 0 {
            return;
        }
        if change.key.as_str().starts_with("member/") {
            let excused = self.excuses(now, change, node);
            for loss in self.losses.values_mut() {
                loss.muddied |= excused;
            }
        } else if let Some(lease) = change.after::<LeaseRecord>() {
            let (at, until) = (self.at, self.until);
            let (aware, above) = (BTreeSet::new(), BTreeMap::new());
            // Of a lease that nobody had seen before nobody can know better.
            let unheard = || Loss { aware, above, muddied: true, at, until };
            let loss = self.losses.entry(lease.name.clone()).or_insert_with(unheard);
            loss.muddied |= !loss.aware.contains(&node);
        }
    }

    /// Whether a member was closed that the store forgot, by one that couldn't know better.
    pub(super) fn excuses(&self, now: u64, change: &Applied, node: usize) -> bool {
        let closes = |record: &Rc<MemberRecord>| {
            matches!(record.state, MemberState::Expired | MemberState::Evicted)
        };
        now < self.until
            && change.after().filter(closes).is_some_and(|record| match change.before {
                None => !self.acquainted.contains(&(node, record.id.clone())),
                Some(_) => self.went_back.contains(&record.id),
            })
    }

    /// Whether the store has never lost anything that anybody had seen.
    pub(super) fn is_untroubled(&self) -> bool {
        self.losses.is_empty()
    }

    /// What the store has lost of this lease.
    pub(super) fn loss(&self, lease: &str) -> Option<&Loss> {
        self.losses.get(lease)
    }

    /// Whether one that can't know has had its hands in this lease, while anybody may trust what the
    /// store has lost of it.
    pub(super) fn is_muddied(&self, lease: &str, now: u64) -> bool {
        self.losses.get(lease).is_some_and(|loss| loss.muddied && now < loss.until)
    }

    /// The highest term of the lease that this node had seen before the store lost terms of it, if
    /// nobody who can't know has written it since.
    pub(super) fn knew(&self, node: usize, lease: &str) -> Option<u64> {
        let loss = self.losses.get(lease).filter(|loss| !loss.muddied)?;
        loss.above.get(&node).copied()
    }

    /// The lease was taken by one that knows: from here on its terms count again.
    pub(super) fn mended(&mut self, lease: &str) {
        self.losses.remove(lease);
    }
}
