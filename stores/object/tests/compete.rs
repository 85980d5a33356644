//! Three candidates compete for one lease while the server is killed, hangs, and loses
//! connections: never two leaders at one instant, terms that grow, and a leader again soon after.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Helpers fail by panicking too.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::azurite::{self, Azurite};
use common::block_on;
use common::proxy::Proxy;
use incumbent::{Moment, Node, Term, clock};
use tokio::runtime::Handle;

const TTL: Duration = Duration::from_secs(2);
/// The ttl and a few seconds are usual; a machine that is busy with other tests may take longer.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn three_candidates_never_lead_at_once_and_one_leads_again_soon() {
    let Some(server) = Azurite::start("three candidates") else { return };
    block_on(compete(&server));
}

async fn compete(server: &Azurite) {
    let arena = Arena::new(server).await;
    arena.leader("at first").await;
    for round in 0..2 {
        server.stop();
        pause(500 + round * 2500).await;
        server.restart();
        arena.leader("after the server was stopped and started again").await;

        server.pause();
        pause(5_000).await;
        arena.nobody_leads();
        server.resume();
        arena.leader("after the server hung for longer than the ttl").await;

        for _ in 0..20 {
            arena.proxies.iter().for_each(Proxy::cut);
            pause(60).await;
        }
        arena.leader("after all connections were cut, again and again").await;

        arena.proxies.iter().for_each(|proxy| proxy.mute(true));
        pause(900).await;
        arena.proxies.iter().for_each(|proxy| proxy.mute(false));
        arena.leader("after answers were lost").await;

        let leader = arena.leader("before it is cut off").await;
        arena.proxies[leader].close(true);
        arena.leader_who(|now| now != leader, "while the last leader is cut off").await;
        arena.proxies[leader].close(false);
        pause(500).await;
    }
    // Azurite saves what it knows every five seconds, so this crash loses nothing.
    arena.proxies.iter().for_each(|proxy| proxy.close(true));
    pause(6_000).await;
    server.kill();
    server.restart();
    arena.proxies.iter().for_each(|proxy| proxy.close(false));
    arena.leader("after the server was killed").await;
    arena.judge();
}

async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// The candidates, and a witness who asks all of them all the time.
struct Arena {
    proxies: Vec<Proxy>,
    board: Arc<Board>,
    witness: std::thread::JoinHandle<()>,
}

#[derive(Default)]
struct Board {
    /// The last term of each candidate.
    held: Mutex<Vec<Option<Term>>>,
    elections: Mutex<Vec<(Moment, usize, u64)>>,
    /// Two at one instant, in words.
    violation: Mutex<Option<String>>,
    looks: AtomicU64,
    over: AtomicBool,
}

impl Arena {
    async fn new(server: &Azurite) -> Self {
        let board = Arc::new(Board { held: Mutex::new(vec![None; 3]), ..Board::default() });
        let mut proxies = Vec::new();
        for number in 0..3 {
            let proxy = Proxy::start(server.port).await;
            let url = azurite::url(proxy.port, "compete");
            let store = incumbent::open(&url).await.expect("opens");
            let builder = Node::builder().cluster("compete").name(format!("candidate-{number}"));
            let node = builder.allow_short_ttl().ttl(TTL).join(store).await.expect("joins");
            Handle::current().spawn(campaign(node, number, Arc::clone(&board)));
            proxies.push(proxy);
        }
        let watched = Arc::clone(&board);
        let witness = std::thread::spawn(move || watched.watch());
        Self { proxies, board, witness }
    }

    /// Who leads, once somebody does.
    async fn leader(&self, when: &str) -> usize {
        self.leader_who(|_| true, when).await
    }

    async fn leader_who(&self, fits: impl Fn(usize) -> bool, when: &str) -> usize {
        let began = clock::now();
        loop {
            let held = self.board.held.lock().expect("a lock").clone();
            let leads = |term: &Option<Term>| term.as_ref().is_some_and(Term::is_held);
            if let Some(leader) = held.iter().position(leads).filter(|leader| fits(*leader)) {
                println!("{when}: {leader}, after {:?}", clock::now().since(began));
                return leader;
            }
            assert!(clock::now().since(began) < SOON, "no leader {when}");
            pause(5).await;
        }
    }

    /// Requests that are never answered end every leadership in time.
    fn nobody_leads(&self) {
        let held = self.board.held.lock().expect("a lock");
        assert!(!held.iter().flatten().any(Term::is_held), "somebody leads on without a store");
    }

    fn judge(self) {
        self.board.over.store(true, Ordering::SeqCst);
        self.witness.join().expect("the witness");
        let violation = self.board.violation.lock().expect("a lock").take();
        assert_eq!(violation, None);
        let mut elections = self.board.elections.lock().expect("a lock").clone();
        elections.sort();
        println!("{elections:?}, {} looks", self.board.looks.load(Ordering::SeqCst));
        assert!(elections.len() > 4, "too little happened: {elections:?}");
        let growing = elections.windows(2).all(|pair| pair[0].2 < pair[1].2);
        assert!(growing, "terms went back or repeated: {elections:?}");
    }
}

impl Board {
    /// A term that has ended never comes back. So one that is held before and after another was
    /// seen held was held at that very instant, too.
    fn watch(&self) {
        while !self.over.load(Ordering::SeqCst) {
            let held = self.held.lock().expect("a lock").clone();
            for (one, first) in held.iter().enumerate() {
                for (other, second) in held.iter().enumerate().filter(|(other, _)| *other != one) {
                    let (Some(first), Some(second)) = (first, second) else { continue };
                    if first.is_held() && second.is_held() && first.is_held() {
                        let terms = (first.term(), second.term());
                        let said = format!("{one} and {other} at {:?}: {terms:?}", clock::now());
                        *self.violation.lock().expect("a lock") = Some(said);
                    }
                }
            }
            self.looks.fetch_add(1, Ordering::SeqCst);
            std::thread::park_timeout(Duration::from_micros(500));
        }
    }
}

async fn campaign(node: Node, number: usize, board: Arc<Board>) {
    let mut campaign = node.campaign("job").expect("a campaign");
    while let Ok(leadership) = campaign.elected().await {
        let term = leadership.handle();
        board.held.lock().expect("a lock")[number] = Some(term.clone());
        let now = clock::now();
        if term.is_held() {
            board.elections.lock().expect("a lock").push((now, number, term.term()));
        }
        leadership.lost().await;
    }
}
