//! Long polls: whoever waits for a lease to change is woken by each change of it, and by nothing else, while other
//! leases change all the time (F71, O56).
//!
//! `INCUMBENT_TEST_FULL=1` makes 10,000 changes instead of 400.
#![cfg(target_os = "linux")]
#![allow(clippy::indexing_slicing, clippy::panic, reason = "this is test code")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use common::{PATIENCE, Server, counted, pass, text};
use incumbent::{Attempt, Leadership, Node, clock};

/// How long a poll waits. It is over sooner if it is woken, by much: who follows looks once a second.
const WAIT: Duration = Duration::from_secs(30);

/// So many leases are waited for at a time, and so many others change beside them.
const WATCHED: usize = 4;
const OTHERS: usize = 3;

#[test]
fn every_change_wakes_who_waits_for_it_and_nothing_else_does() {
    let server = Server::new(Duration::from_secs(15));
    let changes = counted(400, 10_000);
    let (over, beside) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for other in 0..OTHERS {
            let (server, over, beside) = (&server, &over, &beside);
            scope.spawn(move || {
                let mut lease = Lease::new(server, &format!("other-{other}"));
                while !over.load(Ordering::Relaxed) {
                    lease.change();
                    beside.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let watch = |number| {
            let server = &server;
            scope.spawn(move || follow(server, &format!("watched-{number}"), changes / WATCHED))
        };
        let watched: Vec<_> = (0..WATCHED).map(watch).collect();
        // Whoever fails ends the others too, or the test would never end.
        let ended: Vec<_> = watched.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        let slowest = ended.into_iter().map(Result::unwrap).max().unwrap();
        println!(
            "{changes} changes, {} of other leases; the slowest was told after {slowest:?}",
            beside.load(Ordering::Relaxed)
        );
    });
    assert!(beside.load(Ordering::Relaxed) > changes / 4, "hardly anything changed beside them");
}

/// Waits for each change of a lease, and says how long the slowest took to be told.
fn follow(server: &Server, name: &str, changes: usize) -> Duration {
    let mut lease = Lease::new(server, name);
    let mut slowest = Duration::ZERO;
    std::thread::scope(|scope| {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        scope.spawn(move || poll(server, name, &asked, &answer));
        for number in 0..changes {
            // Every third is waited for from a state that was learned elsewhere, as whoever changed it knows it: this
            // server may not have seen it yet, and what it has seen instead is no news.
            if number % 3 == 0 {
                lease.change();
            }
            ask.send(lease.cursor.clone()).unwrap();
            // Before, while and after the question arrives.
            pass(Duration::from_micros(number as u64 * 397 % 3_000));
            let changed = clock::now();
            let wanted = lease.change();
            let told: String = answers.recv_timeout(PATIENCE).unwrap();
            let took = clock::now().since(changed);
            assert_eq!(told, wanted, "{name}, change {number}");
            assert!(
                took < WAIT - Duration::from_secs(5),
                "{name}: its wait was over, after {took:?}"
            );
            slowest = slowest.max(took);
        }
    });
    slowest
}

/// Asks for each state after the one that is given, and says which came.
fn poll(server: &Server, name: &str, asked: &Receiver<String>, answer: &Sender<String>) {
    for after in asked {
        let path = format!("/v1/leases/{name}?after={after}&wait={}s", WAIT.as_secs());
        let lease = server.get(&path).json();
        let _ = answer.send(text(&lease, "cursor").to_owned());
    }
}

/// A lease that changes as often as it is told to. Two take it in turn, each in favour of the other: whoever gave a
/// lease up stands back otherwise.
struct Lease<'a> {
    server: &'a Server,
    nodes: [Node; 2],
    name: String,
    held: Option<Leadership>,
    /// Who takes it next.
    next: usize,
    cursor: String,
}

impl<'a> Lease<'a> {
    fn new(server: &'a Server, name: &str) -> Self {
        let node = |number| {
            let builder = Node::builder().name(format!("{name}-{number}")).without_membership();
            server.runtime().block_on(builder.join(server.store.clone())).unwrap()
        };
        let (name, cursor) = (name.to_owned(), "0.free".to_owned());
        Self { server, nodes: [node(0), node(1)], name, held: None, next: 0, cursor }
    }

    /// Takes it, or frees it; says what its cursor is from then on.
    fn change(&mut self) -> String {
        let runtime = self.server.runtime();
        self.cursor = match self.held.take() {
            Some(held) => {
                let term = held.number();
                self.next = 1 - self.next;
                runtime.block_on(held.release_to(self.nodes[self.next].name())).unwrap();
                format!("{term}.free")
            }
            None => runtime.block_on(self.take()).to_string(),
        };
        self.cursor.clone()
    }

    async fn take(&mut self) -> u64 {
        loop {
            match self.nodes[self.next].try_lead(self.name.as_str()).await.unwrap() {
                Attempt::Elected(held) => return self.held.insert(held).number(),
                // It has seen an older state, and reads again.
                Attempt::Conflict | Attempt::OtherLeader(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
