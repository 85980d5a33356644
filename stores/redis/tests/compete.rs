//! Three candidates compete for one lease while the server is killed, hangs, and loses
//! connections: never two leaders at one instant, terms that grow, and a leader again soon after.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::proxy::{Mood, Proxy};
use common::{Server, open, pause};
use incumbent::{Moment, Node, Term, clock};
use tokio::runtime::Handle;

const TTL: Duration = Duration::from_millis(1500);
/// The ttl and a few seconds are usual; a machine that is busy with other tests may take longer.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn three_candidates_never_lead_at_once_and_one_leads_again_soon() {
    let server = Server::durable();
    let arena = Arena::new(&server).await;
    arena.leader("at first").await;
    for round in 0..2 {
        server.kill();
        pause(800 + round * 2000).await;
        server.resume();
        arena.leader("after the server was killed and started again").await;

        server.pause(true);
        pause(2 * TTL.as_millis() as u64).await;
        arena.nobody_leads();
        server.pause(false);
        arena.leader("after the server hung for two ttls").await;

        for _ in 0..20 {
            server.cut();
            pause(60).await;
        }
        arena.leader("after all connections were cut, again and again").await;

        for proxy in &arena.proxies {
            proxy.become_(Mood::LoseAnswers);
        }
        pause(700).await;
        for proxy in &arena.proxies {
            proxy.become_(Mood::Fine);
        }
        arena.leader("after answers were lost").await;

        let leader = arena.leader("before it is cut off").await;
        arena.proxies[leader].become_(Mood::Silent);
        let other = |now: usize| now != leader;
        arena.leader_who(other, "while the last leader is cut off").await;
        arena.proxies[leader].become_(Mood::Fine);
        pause(500).await;
    }
    arena.judge();
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
    async fn new(server: &Server) -> Self {
        let board = Arc::new(Board { held: Mutex::new(vec![None; 3]), ..Board::default() });
        let mut proxies = Vec::new();
        for number in 0..3 {
            let proxy = Proxy::to(server.port).await;
            let store = open(&proxy.url()).await;
            let node = Node::builder()
                .cluster("compete")
                .name(format!("candidate-{number}"))
                .allow_short_ttl()
                .ttl(TTL)
                .join(store)
                .await
                .expect("joins");
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
            let leads = |term: &Option<Term>| term.as_ref().is_some_and(is_held);
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
        assert!(!held.iter().flatten().any(is_held), "somebody leads on without a store");
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
                    if is_held(first) && is_held(second) && is_held(first) {
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

fn is_held(term: &Term) -> bool {
    term.is_held()
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
