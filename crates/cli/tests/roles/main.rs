//! The role endpoint of servers that were stopped for longer than their clients' ttl, asked at the moment in which
//! they go on: never does one say yes for a lease that somebody else was elected for (F56).
//!
//! Here clients hold the leases; `crates/faults/tests/roles.rs` has leases of the node itself, and more of them.
//! `INCUMBENT_TEST_FULL=1` counts 1,000 losses of a lease instead of 60, and `INCUMBENT_TEST_LOSSES` any number.
#![cfg(all(target_os = "linux", feature = "serve"))]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]

mod elections;
mod server;

use std::sync::Arc;
use std::time::Duration;

use elections::Elections;
use incumbent::clock;
use incumbent_proving::RoleAsker;
use rustix::process::Signal;
use server::Server;

/// Each is stood for at both servers, and each of these clients is a member that beats.
const LEASES: usize = 20;

/// How long somebody may take to be elected.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_stopped_never_says_yes_for_what_others_hold() {
    let losses = losses();
    let directory = tempfile::tempdir().unwrap();
    let servers = [0, 1].map(|number| Server::start(directory.path(), number));
    let elections = Arc::new(Elections::new(LEASES));
    // All are held at the first of them at first.
    for (number, server) in servers.iter().enumerate() {
        server.until_it_listens().await;
        elections.stand(number, server);
        elections.settle(&[number]).await;
    }
    let (mut counted, mut asked) = (0, 0);
    for round in 0.. {
        if counted >= losses {
            break;
        }
        let (of, other) = (round % 2, 1 - round % 2);
        elections.settle(&[of, other]).await;
        let held = elections.terms();
        let mut asker = stop_until_replaced(&servers[of], &elections, of).await;
        // From here on somebody else is known to be elected. What is asked now waits in the server's socket.
        let known = elections.terms();
        asker.send((0..LEASES).map(name));
        servers[of].signal(Signal::CONT);
        for (held, known) in held.iter().zip(&known) {
            asker.read().check(known.term);
            counted += usize::from(held.server == of && known.server == other);
        }
        // Once more, while it takes in what has happened.
        for lease in 0..LEASES {
            let term = elections.terms()[lease].term;
            asker.send([name(lease)]);
            asker.read().check(term);
        }
        asked += 2 * LEASES;
        println!("round {round}: {counted} losses");
    }
    println!("{counted} losses, {asked} questions, not one wrong yes");
}

fn name(lease: usize) -> String {
    format!("lease-{lease}")
}

/// Stops a server until all of its leases are held elsewhere, and gives a connection that it knew before. One that is
/// stopped in the middle of a write keeps SQLite's only lock, and nobody can take over: it goes on for a moment then.
async fn stop_until_replaced(server: &Server, elections: &Elections, of: usize) -> RoleAsker {
    for _ in 0..10 {
        let asker = RoleAsker::connect(&server.socket);
        server.signal(Signal::STOP);
        let end = clock::now() + PATIENCE / 10;
        while clock::now() < end {
            if elections.terms().iter().all(|it| it.server != of) {
                return asker;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.signal(Signal::CONT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not all leases are taken over from a server that stands still");
}

fn losses() -> usize {
    let full = std::env::var_os("INCUMBENT_TEST_FULL").is_some();
    let losses = std::env::var("INCUMBENT_TEST_LOSSES").ok().and_then(|it| it.parse().ok());
    losses.unwrap_or(if full { 1_000 } else { 60 })
}
