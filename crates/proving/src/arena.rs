//! Candidates for one lease, what they write down, and whether it can be true.
//!
//! A candidate stands for a lease ([`stand`]) and writes down when it asked "do I lead?" and what it
//! was told, with moments of CLOCK_BOOTTIME, which all processes of one machine share. Afterwards
//! all histories are laid side by side ([`check`]). They may come from processes, or from one test
//! with several nodes ([`Arena`]).

mod history;
mod stand;
mod verdict;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::{Node, OpenStore, clock};

pub use history::{Entry, History, Loss};
pub use stand::{Order, ask, stand};
pub use verdict::{Account, Violation, check};

use crate::{Mood, Proxy, Server, Wire};

/// How long it is until somebody leads again. The ttl and a few seconds are usual; a machine that is
/// busy with other tests may take longer.
const SOON: Duration = Duration::from_secs(60);

/// Three candidates compete for one lease, each on a path of its own, while the server is killed and
/// hangs, connections are cut, answers are lost, and the leader is cut off: never do two lead at one
/// instant, terms grow, and somebody leads again soon.
///
/// # Panics
///
/// If any of that isn't so.
pub async fn compete(
    server: &Server,
    wire: Wire,
    ttl: Duration,
    open: impl AsyncFn(&Proxy) -> OpenStore,
) {
    let mut arena = Arena { candidates: Vec::new() };
    for number in 0..3 {
        let proxy = Proxy::over(wire, server.port()).await;
        let store = open(&proxy).await;
        arena.candidates.push(Candidate::new(number, ttl, proxy, store));
    }
    arena.leader("at first").await;
    for round in 0..2 {
        server.kill();
        pause(Duration::from_millis(800 + round * 2000)).await;
        server.resume();
        arena.leader("after the server was killed and started again").await;

        server.pause(true);
        pause(2 * ttl).await;
        arena.nobody_leads();
        server.pause(false);
        arena.leader("after the server hung for two ttls").await;

        for _ in 0..20 {
            arena.paths().for_each(Proxy::cut);
            pause(Duration::from_millis(60)).await;
        }
        arena.leader("after all connections were cut, again and again").await;

        arena.paths().for_each(|path| path.set(Mood::LoseAnswers));
        pause(Duration::from_millis(700)).await;
        arena.paths().for_each(|path| path.set(Mood::Fine));
        arena.leader("after answers were lost").await;

        let leader = arena.leader("before it is cut off").await;
        let path = &arena.candidates.get(leader).expect("a candidate").path;
        path.set(Mood::Silent);
        arena.leader_who(|now| now != leader, "while the last leader is cut off").await;
        path.set(Mood::Fine);
        pause(Duration::from_millis(500)).await;
    }
    arena.judge();
}

/// Several nodes that compete for one lease.
struct Arena {
    candidates: Vec<Candidate>,
}

struct Candidate {
    path: Proxy,
    history: Arc<Mutex<History>>,
    node: Node,
    standing: JoinHandle<()>,
}

impl Candidate {
    fn new(number: usize, ttl: Duration, path: Proxy, store: OpenStore) -> Self {
        let name = format!("candidate-{number}");
        let builder = Node::builder().cluster("compete").name(&name).allow_short_ttl().ttl(ttl);
        let history = History { process: name, entries: Vec::new() };
        let history = Arc::new(Mutex::new(history));
        let written = Arc::clone(&history);
        let (joined, join) = channel();
        let standing = std::thread::spawn(move || {
            let node = builder.join(store).wait().expect("it joins");
            let (_never, orders) = channel();
            joined.send(node.clone()).expect("somebody waits for it");
            let note = |entry| {
                written.lock().unwrap_or_else(PoisonError::into_inner).entries.push(entry);
                Ok(())
            };
            stand(&node, "job", &orders, note).expect("it stands");
        });
        let node = join.recv().expect("it joins");
        Self { path, history, node, standing }
    }

    fn leads(&self) -> bool {
        let now = clock::now().as_nanos();
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(history.entries.last(), Some(Entry::Asked { held: true, until, .. }) if now < *until)
    }
}

impl Arena {
    fn paths(&self) -> impl Iterator<Item = &Proxy> {
        self.candidates.iter().map(|candidate| &candidate.path)
    }

    /// Who leads, once somebody does.
    async fn leader(&self, when: &str) -> usize {
        self.leader_who(|_| true, when).await
    }

    async fn leader_who(&self, fits: impl Fn(usize) -> bool, when: &str) -> usize {
        let began = clock::now();
        loop {
            let mut leading = self.candidates.iter().enumerate().filter(|(_, it)| it.leads());
            if let Some((leader, _)) = leading.find(|(leader, _)| fits(*leader)) {
                println!("{when}: {leader}, after {:?}", clock::now().since(began));
                return leader;
            }
            assert!(clock::now().since(began) < SOON, "no leader {when}");
            pause(Duration::from_millis(5)).await;
        }
    }

    /// Requests that are never answered end every leadership in time.
    fn nobody_leads(&self) {
        assert!(!self.candidates.iter().any(Candidate::leads), "somebody leads without a store");
    }

    fn judge(self) {
        let mut histories = Vec::new();
        for candidate in self.candidates {
            // Whether it could say goodbye makes no difference.
            let _ = candidate.node.leave().wait();
            candidate.standing.join().expect("its end");
            histories.push(std::mem::take(
                &mut *candidate.history.lock().unwrap_or_else(PoisonError::into_inner),
            ));
        }
        match check(&histories) {
            Ok(account) => {
                println!("{account:?}");
                assert!(account.terms > 4, "too little happened: {account:?}");
            }
            Err(violation) => panic!("{violation}"),
        }
    }
}

async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}
