//! The role endpoint of servers that were stopped for longer than their clients' ttl, asked at the moment in which
//! they go on: never does one say yes for a lease that somebody else was elected for (F10, F66).
//!
//! `INCUMBENT_TEST_FULL=1` counts 10,000 losses instead of 80, and `INCUMBENT_TEST_LOSSES` any number.
#![cfg(all(target_os = "linux", feature = "serve"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this is test code, although not all of it is a test"
)]

mod elections;
mod server;

use std::sync::Arc;
use std::time::Duration;

use elections::Elections;
use incumbent::clock;
use rustix::process::Signal;
use server::Server;

/// So many connections ask at a time.
const CONNECTIONS: usize = 8;

/// How long somebody may take to be elected.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_stopped_never_says_yes_for_what_others_hold() {
    let (leases, losses) = counted();
    let directory = tempfile::tempdir().unwrap();
    let servers = [0, 1].map(|number| Server::start(directory.path(), number));
    for server in &servers {
        server.until_it_listens().await;
    }
    let elections = Arc::new(Elections::new(leases));
    for (number, server) in servers.iter().enumerate() {
        elections.stand(number, server);
    }
    let (mut counted, mut asked, began) = (0, 0, clock::now());
    for round in 0.. {
        if counted >= losses {
            break;
        }
        let (of, other) = (round % 2, 1 - round % 2);
        // All are held at one of them, and the other waits for all.
        elections.gather(of, &servers).await;
        let mut askers = Vec::new();
        for _ in 0..CONNECTIONS {
            askers.push(servers[of].ask().await);
        }
        let held = elections.terms();
        stop_until_replaced(&servers[of], &elections, of).await;
        // From here on somebody else is known to be elected. What is asked now waits in the server's sockets.
        let known = elections.terms();
        for (number, asker) in askers.iter_mut().enumerate() {
            asker.send((number..leases).step_by(CONNECTIONS)).await;
        }
        servers[of].signal(Signal::CONT);
        for (number, asker) in askers.iter_mut().enumerate() {
            for lease in (number..leases).step_by(CONNECTIONS) {
                let role = asker.read().await;
                role.check(known[lease].term, lease);
                asked += 1;
                if held[lease].server == of && known[lease].server == other {
                    counted += 1;
                }
            }
        }
        // Once more, while it takes in what has happened.
        for lease in 0..leases {
            let term = elections.terms()[lease].term;
            let asker = &mut askers[lease % CONNECTIONS];
            asker.send(std::iter::once(lease)).await;
            asker.read().await.check(term, lease);
            asked += 1;
        }
        println!("round {round}: {counted} losses after {:?}", clock::now().since(began));
    }
    println!("{counted} losses, {asked} questions, not one wrong yes");
    assert!(elections.terms().iter().all(|it| it.term > 1), "not every lease has changed hands");
}

/// Stops a server until all of its leases are held elsewhere. One that is stopped in the middle of a write keeps
/// SQLite's only lock, and nobody can take over: it goes on for a moment then.
async fn stop_until_replaced(server: &Server, elections: &Elections, of: usize) {
    for _ in 0..10 {
        server.signal(Signal::STOP);
        let end = clock::now() + PATIENCE / 6;
        while clock::now() < end {
            if elections.terms().iter().all(|it| it.server != of) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.signal(Signal::CONT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not all leases are taken over from a server that was stopped");
}

/// How many leases, and how many losses of one.
fn counted() -> (usize, usize) {
    let full = std::env::var_os("INCUMBENT_TEST_FULL").is_some();
    let losses = std::env::var("INCUMBENT_TEST_LOSSES").ok().and_then(|it| it.parse().ok());
    let leases = std::env::var("INCUMBENT_TEST_LEASES").ok().and_then(|it| it.parse().ok());
    // A server follows 256 leases for who asks about them.
    let leases = leases.unwrap_or(if full { 250 } else { 20 });
    (leases, losses.unwrap_or(if full { 10_000 } else { 80 }))
}
