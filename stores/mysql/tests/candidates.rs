//! Three candidates compete for one lease while the server fails in every way.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::proxy::Proxy;
use common::{Server, block_on, connect, fresh};
use incumbent::{Leadership, Node};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

const TTL: Duration = Duration::from_millis(1500);
/// The ttl and a few seconds are usual; a machine that is busy with other tests may take longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a candidate was told, when. The moments are CLOCK_BOOTTIME, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Reign {
    candidate: usize,
    term: u64,
    /// Read after the first yes.
    from: u64,
    /// Read before the last yes.
    until: u64,
}

#[derive(Default)]
struct Record {
    reigns: Mutex<Vec<Reign>>,
    stop: AtomicBool,
}

impl Record {
    fn reigns(&self) -> Vec<Reign> {
        self.reigns.lock().expect("a lock").clone()
    }

    fn note(&self, seen: Reign) {
        let mut reigns = self.reigns.lock().expect("a lock");
        let same =
            |known: &&mut Reign| (known.candidate, known.term) == (seen.candidate, seen.term);
        match reigns.iter_mut().find(same) {
            Some(known) => known.until = seen.until,
            None => reigns.push(seen),
        }
    }

    /// Whether somebody leads in a later moment than this.
    fn leads_after(&self, moment: u64) -> bool {
        self.reigns().iter().any(|reign| reign.until > moment)
    }
}

fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Asks until the answer is no. Whoever was told yes led at some moment between the readings of
/// the clock around the question, and, as a no is final, between two yeses all the time.
async fn reign(record: &Record, candidate: usize, leadership: &Leadership) {
    let term = leadership.term();
    let mut reign: Option<Reign> = None;
    while !record.stop.load(Ordering::SeqCst) {
        let before = now();
        let held = leadership.is_held();
        let after = now();
        if !held {
            break;
        }
        let seen = reign.get_or_insert(Reign { candidate, term, from: after, until: before });
        seen.until = before;
        record.note(*seen);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn candidate(record: Arc<Record>, number: usize, url: String) {
    let store = connect(&url).await;
    let node = Node::builder()
        .allow_short_ttl()
        .ttl(TTL)
        .cluster("competition")
        .name(format!("candidate-{number}"))
        .join(store)
        .await
        .expect("it joins");
    while !record.stop.load(Ordering::SeqCst) {
        let mut campaign = node.campaign("prize").expect("a campaign");
        let elected = tokio::time::timeout(Duration::from_millis(500), campaign.elected()).await;
        if let Ok(Ok(leadership)) = elected {
            reign(&record, number, &leadership).await;
        }
    }
    let _ = tokio::time::timeout(Duration::from_secs(5), node.leave()).await;
}

async fn leader_again(record: &Record, what: &str) {
    let back = now();
    let deadline = back + PATIENCE.as_nanos() as u64;
    while !record.leads_after(back) {
        assert!(now() < deadline, "no leader within {PATIENCE:?} after {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let waited = Duration::from_nanos(now() - back);
    println!("{what}: a leader again after {waited:?}");
}

/// Requests that are never answered from now on end every leadership within a ttl.
async fn nobody_leads(record: &Record) {
    let cut_off = now();
    tokio::time::sleep(TTL * 2).await;
    let later = cut_off + TTL.as_nanos() as u64;
    assert!(!record.leads_after(later), "somebody leads on without a store");
}

/// No two reigns of different candidates overlap, and later ones have higher terms.
fn check(mut reigns: Vec<Reign>) {
    reigns.sort_by_key(|reign| reign.from);
    for (place, two) in reigns.iter().enumerate() {
        for one in &reigns[..place] {
            assert!(one.until < two.from, "two leaders at one instant: {one:?} and {two:?}");
            assert!(one.term < two.term, "terms don't grow: {one:?} and {two:?}");
        }
    }
    println!("{} reigns, the last in term {:?}", reigns.len(), reigns.last().map(|r| r.term));
}

#[test]
fn never_two_leaders_and_soon_one_again_whatever_the_server_does() {
    let server = Server::start(&[]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let url = proxy.url(&fresh());
        let record = Arc::new(Record::default());
        let candidates: Vec<JoinHandle<()>> = (0..3)
            .map(|number| {
                let (record, url) = (Arc::clone(&record), url.clone());
                Handle::current().spawn(candidate(record, number, url))
            })
            .collect();
        leader_again(&record, "the start").await;
        for round in 0..2 {
            for gap in [10, 300, 900] {
                proxy.cut();
                tokio::time::sleep(Duration::from_millis(gap)).await;
            }
            leader_again(&record, "cut connections").await;

            server.pause(true);
            nobody_leads(&record).await;
            server.pause(false);
            leader_again(&record, "a stopped server").await;

            server.kill();
            tokio::time::sleep(if round == 0 { TTL * 2 } else { TTL / 3 }).await;
            server.resume();
            leader_again(&record, "a killed server").await;

            proxy.freeze(true);
            nobody_leads(&record).await;
            proxy.freeze(false);
            leader_again(&record, "a silent network").await;
        }
        record.stop.store(true, Ordering::SeqCst);
        for candidate in candidates {
            candidate.await.expect("no panic");
        }
        let reigns = record.reigns();
        // A server that is stopped for longer than the ttl ends a reign each time.
        assert!(reigns.len() >= 4, "{reigns:?}");
        check(reigns);
    });
}
