//! Several nodes behind paths that fail in every way, each on its own: no term is trusted once
//! a later one is, and notices still come in pairs.
#![allow(clippy::unwrap_used, reason = "this is test code, also where it is no test")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{pause, soon, spawn};
use incumbent::{Event, MemoryStore, Moment, Node, OpenStore, Term, clock};
use incumbent_testkit::{Faults, FaultyStore, Rng};

const NODES: u64 = 4;
const RUN: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_two_terms_are_trusted_at_one_instant() {
    let inner = MemoryStore::new();
    let sightings = Arc::new(Sightings::default());
    let (mut nodes, mut paths, mut watchers) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..NODES {
        let faults = Faults::mixed(number + 1).delay(Duration::from_millis(40));
        let path = FaultyStore::new(Arc::new(inner.clone()), faults);
        let builder = common::builder(&format!("node-{number}")).ttl(Duration::from_millis(700));
        let node = soon(builder.join(OpenStore::from(path.clone()))).await.unwrap();
        watchers.push(spawn(pairs(node.subscribe())));
        let seen = Arc::clone(&sightings);
        // Detached: it runs for as long as its node.
        drop(node.lead("scheduler", move |term| work(term, Arc::clone(&seen))).unwrap());
        nodes.push(node);
        paths.push(path);
    }
    let stop = sightings.watch(&nodes);
    disturb(&nodes, &paths).await;
    stop.store(true, Ordering::SeqCst);
    for node in &nodes {
        // Whether it is in order depends on the faults.
        let _ = soon(node.leave()).await;
    }
    let mut elections = 0;
    for watcher in watchers {
        elections += soon(watcher).await.unwrap();
    }
    let terms = sightings.check();
    assert!(terms >= 5 && elections >= 5, "too quiet: {terms} terms, {elections} elections");
}

/// Cuts leaders off, asks them to resign and lets them be, by turns.
async fn disturb(nodes: &[Node], paths: &[FaultyStore]) {
    let mut rng = Rng::new(7);
    let end = clock::now() + RUN;
    while clock::now() < end {
        let leader = nodes.iter().position(|node| node.is_leader("scheduler"));
        let victim = leader.unwrap_or_else(|| rng.below(nodes.len()));
        let (Some(node), Some(path)) = (nodes.get(victim), paths.get(victim)) else { return };
        if rng.chance(0.5) {
            path.cut(true);
            pause(rng.below(1500) as u64).await;
            path.cut(false);
        } else if let Some(term) = node.term("scheduler") {
            term.resign();
        }
        pause(rng.below(500) as u64).await;
    }
}

async fn work(term: Term, seen: Arc<Sightings>) -> incumbent::WorkResult {
    let mut round = 0;
    loop {
        seen.ask(&term);
        round += 1;
        if round % 400 == 0 {
            return Err("this work fails now and then".into());
        }
        // It ignores its token: being aborted must do.
        pause(1).await;
    }
}

/// Each elected is followed by its lost; says how many there were.
async fn pairs(mut notices: incumbent::Subscription) -> usize {
    let (mut held, mut elections) = (None, 0);
    while let Some(notice) = notices.recv().await {
        match notice.event {
            Event::Elected { term, .. } => {
                assert_eq!(held.replace(term), None, "F25");
                elections += 1;
            }
            Event::Lost { term, .. } => assert_eq!(held.take(), Some(term), "F25"),
            _ => {}
        }
    }
    assert_eq!(held, None, "F25: the last is told too");
    elections
}

/// When each term was surely trusted.
#[derive(Default)]
struct Sightings {
    by_term: Mutex<BTreeMap<u64, Span>>,
}

/// The first moment after a yes, and the last before one.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: Moment,
    last: Moment,
}

impl Sightings {
    fn ask(&self, term: &Term) {
        let before = clock::now();
        if !term.is_held() {
            return;
        }
        let after = clock::now();
        let mut by_term = self.by_term.lock().unwrap();
        let span = by_term.entry(term.number()).or_insert(Span { first: after, last: before });
        span.first = span.first.min(after);
        span.last = span.last.max(before);
    }

    /// Asks all nodes from outside too, as often as it can.
    fn watch(self: &Arc<Self>, nodes: &[Node]) -> Arc<AtomicBool> {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, nodes, stopped) = (Arc::clone(self), nodes.to_vec(), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                for term in nodes.iter().filter_map(|node| node.term("scheduler")) {
                    seen.ask(&term);
                }
                std::thread::park_timeout(Duration::from_micros(200));
            }
        });
        stop
    }

    /// No term was trusted at or after a moment at which a later one was.
    fn check(&self) -> usize {
        let by_term = self.by_term.lock().unwrap();
        let spans: Vec<(u64, Span)> = by_term.iter().map(|(term, span)| (*term, *span)).collect();
        for ((earlier, one), (later, other)) in spans.iter().zip(spans.iter().skip(1)) {
            assert!(
                one.last < other.first,
                "terms {earlier} and {later} overlap: {one:?} {other:?}"
            );
        }
        spans.len()
    }
}
