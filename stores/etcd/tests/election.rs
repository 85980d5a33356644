//! Three candidates compete for one lease while the server fails: never two leaders, and one again
//! soon after.
#![allow(clippy::panic, clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{Proxy, Server, block_on, connect, fresh, pause};
use incumbent::clock;
use incumbent::{Moment, Node};

const LEASE: &str = "scheduler";
const TTL: Duration = Duration::from_secs(2);
/// A ttl and a few seconds are usual; a machine that is busy with other tests may take longer.
const BOUND: Duration = Duration::from_secs(60);

/// A stretch of time over which one node surely believed that it led.
#[derive(Clone, Debug)]
struct Reign {
    node: usize,
    term: u64,
    from: Moment,
    to: Moment,
}

/// Asks one node over and over whether it leads.
fn sample(number: usize, node: Node, stop: Arc<AtomicBool>) -> JoinHandle<Vec<Reign>> {
    std::thread::spawn(move || {
        let (_keep, never) = mpsc::channel::<()>();
        let mut reigns: Vec<Reign> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let before = clock::now();
            if let Some(term) = node.term(LEASE).filter(incumbent::Term::is_held) {
                // A yes was true at some moment between these two; all between two yeses of one
                // term was yes as well, for a no is final.
                let (number, term, after) = (number, term.term(), clock::now());
                match reigns.last_mut() {
                    Some(reign) if reign.term == term => reign.to = reign.to.max(before),
                    _ => reigns.push(Reign { node: number, term, from: after, to: after }),
                }
            }
            let _ = never.recv_timeout(Duration::from_millis(1));
        }
        reigns
    })
}

fn check(mut reigns: Vec<Reign>) -> usize {
    reigns.sort_by_key(|reign| reign.from);
    for pair in reigns.windows(2) {
        let [one, two] = pair else { continue };
        assert!(
            one.to < two.from || one.node == two.node,
            "two lead at one instant: {one:?} and {two:?}"
        );
        assert!(one.term < two.term, "terms must grow: {one:?} and {two:?}");
    }
    reigns.len()
}

/// Three nodes on handles of their own, each behind the same path.
struct Contest {
    nodes: Vec<Node>,
    stop: Arc<AtomicBool>,
    samplers: Vec<JoinHandle<Vec<Reign>>>,
}

impl Contest {
    async fn begin(url: &str) -> Self {
        let mut contest = Self { nodes: vec![], stop: Arc::default(), samplers: vec![] };
        for number in 0..3 {
            let builder = Node::builder().cluster("contest").name(format!("node-{number}"));
            let builder = builder.allow_short_ttl().ttl(TTL).drain(Duration::from_millis(200));
            let node = builder.join(connect(url).await).await.expect("the node joins");
            let work = |_| std::future::pending::<incumbent::WorkResult>();
            node.lead(LEASE, work).expect("a candidate");
            contest.samplers.push(sample(number, node.clone(), Arc::clone(&contest.stop)));
            contest.nodes.push(node);
        }
        contest
    }

    fn leader(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.is_leader(LEASE))
    }

    /// Waits until somebody leads, and says how long that took.
    async fn led(&self, when: &str) -> Duration {
        let begun = clock::now();
        while self.leader().is_none() {
            let waited = clock::now().since(begun);
            assert!(waited < BOUND, "nobody leads {when}, after {waited:?}");
            pause(5).await;
        }
        let waited = clock::now().since(begun);
        println!("{when}: led after {waited:?}");
        waited
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let reigns: Vec<Reign> =
            self.samplers.into_iter().flat_map(|one| one.join().expect("samples")).collect();
        println!("{reigns:#?}");
        assert!(check(reigns) > 1, "the lease changed hands");
        for node in &self.nodes {
            let _ = tokio::time::timeout(Duration::from_secs(5), node.leave()).await;
        }
    }
}

#[test]
fn never_two_leaders_while_the_server_fails() {
    block_on(async {
        let server = Server::start(&[]);
        let proxy = Proxy::to(server.port).await;
        let contest = Contest::begin(&proxy.url(&fresh())).await;
        contest.led("at first").await;

        for round in 0..2 {
            server.kill();
            pause(3000 * round).await;
            server.resume();
            contest.led("after a kill").await;
            pause(500).await;

            server.pause(true);
            pause(2 * TTL.as_millis() as u64).await;
            assert_eq!(contest.leader(), None, "somebody leads on without a store");
            server.pause(false);
            contest.led("after a pause longer than the ttl").await;
            pause(500).await;

            for _ in 0..20 {
                proxy.cut();
                pause(37).await;
            }
            contest.led("after cut connections").await;

            proxy.freeze(true);
            pause(2 * TTL.as_millis() as u64).await;
            assert_eq!(contest.leader(), None, "somebody leads on without a store");
            proxy.freeze(false);
            contest.led("after a path that swallowed everything").await;
            pause(500).await;
        }
        contest.end().await;
    });
}

#[test]
fn a_clean_hand_over_takes_a_moment() {
    block_on(async {
        let contest = Contest::begin(&common::shared()).await;
        contest.led("at first").await;
        for _ in 0..3 {
            let before = contest.leader().expect("a leader");
            let term = contest.nodes.get(before).and_then(|node| node.term(LEASE));
            let term = term.expect("a term");
            term.resign();
            let begun = clock::now();
            // After some rounds all of them stand back, and then anyone may be the first again.
            let later = |node: usize| {
                let now = contest.nodes.get(node).and_then(|node| node.term(LEASE));
                now.is_some_and(|now| now.term() > term.term())
            };
            while !contest.leader().is_some_and(later) {
                assert!(clock::now().since(begun) < BOUND, "nobody took over");
                pause(1).await;
            }
            println!("handed over in {:?}", clock::now().since(begun));
        }
        contest.end().await;
    });
}
