//! Every way in which a few faults can strike a small cluster, by a model checker.
//!
//! Two members contend for one lease, on clocks that drift apart as far as the margin allows.
//! What they do is deterministic; what is left to choose is the fate of each request, and one
//! moment at which a node is cut off for good. The checker tries all choices within a budget.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

use incumbent_core::mutant::{Mutant, Planted};
use incumbent_core::records::{LeaseRecord, Profile};
use incumbent_core::store::{
    ErrorKind, Expect, Found, Key, Outcome, Read, Record, Reply, Version, Write,
};
use incumbent_core::{
    Config, Elector, LeaseName, Request, RequestId, Rhythm, Stance, Timing, keys,
};
use stateright::{Checker, Model, Property};

use crate::clock::Clock;
use crate::scenario::{MAX_DRIFT, MILLI};

const TTL: u64 = 3_000;
/// The way to the store, and the way back.
const WAY: u64 = 2 * MILLI;

/// A small cluster and how much may go wrong in it.
#[derive(Clone, Debug)]
pub struct SmallCluster {
    /// How many members there are.
    pub members: usize,
    /// How many requests may go wrong.
    pub faults: usize,
    /// How long it is followed, in milliseconds.
    pub horizon: u64,
    /// The mistake to make, if any.
    pub mutant: Option<Mutant>,
}

/// What the checker found.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// How many different states there are.
    pub states: usize,
    /// The choices that lead to a violation, if there is one.
    pub violation: Option<(&'static str, Vec<String>)>,
}

impl SmallCluster {
    /// Tries everything, and stops at the first violation.
    #[must_use]
    pub fn explore(self) -> Exploration {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let checker = self.checker().threads(threads).spawn_dfs().join();
        let violation = checker.discoveries().into_iter().next().map(|(name, path)| {
            let actions = path.into_actions();
            (name, actions.iter().map(|choice| format!("{choice:?}")).collect())
        });
        Exploration { states: checker.unique_state_count(), violation }
    }
}

/// One state of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    now: u64,
    nodes: Vec<Elector>,
    store: BTreeMap<Key, (Vec<u8>, Version)>,
    /// Sent, and its fate not chosen yet.
    undecided: Vec<(usize, RequestOnItsWay)>,
    /// On its way, by the instant at which something happens to it.
    flying: Vec<(u64, Flight)>,
    faults_left: usize,
    cut: Option<usize>,
    /// The highest term seen, and whether it ever went down.
    term: u64,
    term_fell: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RequestOnItsWay(Request);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Flight {
    Arrives(usize, RequestOnItsWay, ReplyFate),
    Returns(usize, RequestId, Result<Reply, ErrorKind>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ReplyFate {
    Comes,
    ComesLate,
    IsLost,
}

/// What the checker may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The request fares well.
    Well(u64),
    /// It never arrives, and the sender hears nothing.
    Lost(u64),
    /// It never arrives, and the sender hears that the outcome is unknown.
    LostInDoubt(u64),
    /// It is applied, and the reply is lost.
    Unanswered(u64),
    /// It is applied, and the reply comes just before the sender gives up.
    SlowReply(u64),
    /// It is applied just before the sender gives up.
    SlowRequest(u64),
    /// It is applied this many milliseconds later, when the sender has long given up.
    Late(u64, u64),
    /// From here on, nothing from this node arrives.
    Cut(usize),
    /// Time goes on to whatever happens next.
    Next,
}

impl Model for SmallCluster {
    type State = Moment;
    type Action = Choice;

    fn init_states(&self) -> Vec<Moment> {
        let mut state = Moment {
            now: 0,
            nodes: Vec::new(),
            store: BTreeMap::new(),
            undecided: Vec::new(),
            flying: Vec::new(),
            faults_left: self.faults,
            cut: None,
            term: 0,
            term_fell: false,
        };
        for at in 0..self.members {
            let mut node = Elector::new(config(self.mutant), at as u64 + 1, clock(at).at(0));
            node.campaign(clock(at).at(0), lease(), Stance::default());
            state.nodes.push(node);
        }
        for at in 0..self.members {
            state.poll(at);
        }
        vec![state]
    }

    fn actions(&self, state: &Moment, actions: &mut Vec<Choice>) {
        let Some((node, request)) = state.undecided.first() else {
            if state.now < self.horizon * MILLI {
                actions.push(Choice::Next);
            }
            return;
        };
        let id = request.0.id.0;
        actions.push(Choice::Well(id));
        if state.cut.is_some_and(|cut| cut == *node) {
            return;
        }
        if state.cut.is_none() && *node == 0 {
            actions.push(Choice::Cut(*node));
        }
        if state.faults_left > 0 {
            actions.extend([
                Choice::LostInDoubt(id),
                Choice::SlowReply(id),
                Choice::SlowRequest(id),
            ]);
            if !request.0.exchange.writes.is_empty() {
                actions.extend([
                    Choice::Lost(id),
                    Choice::Unanswered(id),
                    Choice::Late(id, TTL - TTL / 10),
                    Choice::Late(id, TTL + TTL / 10),
                ]);
            }
        }
    }

    fn next_state(&self, last: &Moment, choice: Choice) -> Option<Moment> {
        let mut state = last.clone();
        if choice == Choice::Next {
            state.go_on();
            return Some(state);
        }
        if let Choice::Cut(node) = choice {
            state.cut = Some(node);
            return Some(state);
        }
        let (node, request) = state.undecided.remove(0);
        state.faults_left -= usize::from(!matches!(choice, Choice::Well(_)));
        state.decide(node, request, choice);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one-leader", |_: &Self, state: &Moment| {
                let now = state.now;
                let trusts =
                    |(at, node): (usize, &Elector)| node.trusts(&lease(), clock(at).at(now));
                state.nodes.iter().enumerate().filter_map(trusts).count() < 2
            }),
            Property::always("terms", |_: &Self, state: &Moment| !state.term_fell),
        ]
    }
}

impl Moment {
    fn decide(&mut self, node: usize, request: RequestOnItsWay, choice: Choice) {
        // Just before the sender gives up, whose clock may be a little fast.
        let patience = TTL / 3 * 9 / 10 * MILLI;
        let (after, reply) = match choice {
            Choice::Well(_) if self.cut == Some(node) => return,
            Choice::Well(_) => (WAY, ReplyFate::Comes),
            Choice::Unanswered(_) => (WAY, ReplyFate::IsLost),
            Choice::SlowReply(_) => (WAY, ReplyFate::ComesLate),
            Choice::SlowRequest(_) => (patience, ReplyFate::Comes),
            Choice::Late(_, millis) => (millis * MILLI, ReplyFate::IsLost),
            Choice::LostInDoubt(_) => {
                let doubt = Flight::Returns(node, request.0.id, Err(ErrorKind::Unknown));
                return self.flying.push((self.now + 2 * WAY, doubt));
            }
            Choice::Lost(_) | Choice::Cut(_) | Choice::Next => return,
        };
        self.flying.push((self.now + after, Flight::Arrives(node, request, reply)));
    }

    /// Moves on to the next thing that happens, and lets it happen.
    fn go_on(&mut self) {
        let wake = |(at, node): (usize, &Elector)| clock(at).instant(node.wake_at());
        let wake = self.nodes.iter().enumerate().map(wake).min().unwrap_or(u64::MAX);
        let flight = self.flying.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let (at, index) = match flight {
            Some((index, (at, _))) if *at <= wake => (*at, Some(index)),
            Some(_) | None => (wake, None),
        };
        self.now = at.max(self.now);
        match index.map(|index| self.flying.remove(index).1) {
            None => {}
            Some(Flight::Arrives(node, request, fate)) => self.arrive(node, &request.0, fate),
            Some(Flight::Returns(node, id, answer)) => {
                let now = clock(node).at(self.now);
                if self.cut != Some(node)
                    && let Some(core) = self.nodes.get_mut(node)
                {
                    core.handle(now, id, answer);
                }
            }
        }
        for node in 0..self.nodes.len() {
            self.poll(node);
        }
    }

    fn arrive(&mut self, node: usize, request: &Request, fate: ReplyFate) {
        let reads = request.exchange.reads.iter().map(|read| self.read(read)).collect();
        let mut writes = Vec::new();
        for write in &request.exchange.writes {
            writes.push(self.write(write));
        }
        let after = match fate {
            ReplyFate::Comes => WAY,
            ReplyFate::ComesLate => TTL / 3 * 9 / 10 * MILLI,
            ReplyFate::IsLost => return,
        };
        let back = Flight::Returns(node, request.id, Ok(Reply { writes, reads }));
        self.flying.push((self.now + after, back));
    }

    fn read(&self, read: &Read) -> Found {
        let record = |key: &Key, (value, version): &(Vec<u8>, Version)| Record {
            key: key.clone(),
            value: value.clone(),
            version: version.clone(),
            age: None,
        };
        match read {
            Read::Key { key, unless } => match self.store.get(key) {
                None => Found::Absent,
                Some((_, version)) if unless.as_ref() == Some(version) => Found::Unchanged,
                Some(entry) => Found::Record(record(key, entry)),
            },
            Read::Prefix(prefix) => Found::Records(
                self.store
                    .iter()
                    .filter(|(key, _)| key.as_str().starts_with(prefix.as_str()))
                    .map(|(key, entry)| record(key, entry))
                    .collect(),
            ),
        }
    }

    fn write(&mut self, write: &Write) -> Outcome {
        let Write::Put(put) = write else {
            self.store.remove(write.key());
            return Outcome::Deleted;
        };
        let there = self.store.get(&put.key).map(|(_, version)| version);
        let expected = match &put.expect {
            Expect::Absent => there.is_none(),
            Expect::Version(version) => there == Some(version),
        };
        if !expected {
            return Outcome::Refused;
        }
        if put.key == keys::lease(&lease())
            && let Ok(record) = serde_json::from_slice::<LeaseRecord>(&put.value)
        {
            self.term_fell |= record.term < self.term;
            self.term = record.term;
        }
        let version = put.stamp.version();
        self.store.insert(put.key.clone(), (put.value.clone(), version.clone()));
        Outcome::Applied(version)
    }

    fn poll(&mut self, at: usize) {
        let now = clock(at).at(self.now);
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.poll(now);
        while let Some(request) = node.next_request() {
            self.undecided.push((at, RequestOnItsWay(request)));
        }
        while node.next_event().is_some() {}
    }
}

fn lease() -> LeaseName {
    LeaseName::new("lease-1").unwrap_or_else(|_| LeaseName::leader())
}

/// The first member's clock is slow and the others' are fast, as far as the margin allows.
fn clock(at: usize) -> Clock {
    let ppm = if at == 0 { -MAX_DRIFT } else { MAX_DRIFT };
    Clock { offset: 1_000_000 * MILLI, ppm, lost: 0, wall_ms: 0, confused: false }
}

fn config(mutant: Option<Mutant>) -> Config {
    let mut timing = Timing::for_ttl(Duration::from_millis(TTL));
    timing.rhythm = Rhythm::Exact;
    Config {
        profile: Profile::named("member"),
        timing,
        push: true,
        max_value: 16 << 20,
        membership: false,
        planted: Planted::new(mutant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(faults: usize, mutant: Option<Mutant>) -> SmallCluster {
        SmallCluster { members: 2, faults, horizon: 8_000, mutant }
    }

    #[test]
    fn one_fault_and_one_cut_break_nothing() {
        let exploration = cluster(1, None).explore();
        assert!(exploration.violation.is_none(), "{exploration:?}");
        assert!(exploration.states > 1_000, "only {} states", exploration.states);
    }

    #[test]
    fn each_marked_mistake_is_found() {
        for mutant in [
            Mutant::TrustFromReply,
            Mutant::NoMargin,
            Mutant::WatchFromSend,
            Mutant::TtlChangesInMidLife,
            Mutant::SettledBeatTrustsFromRead,
        ] {
            let exploration = cluster(1, Some(mutant)).explore();
            let (property, _) = exploration.violation.unwrap_or(("nothing", Vec::new()));
            assert_eq!(property, "one-leader", "{mutant:?}, {} states", exploration.states);
        }
    }
}
