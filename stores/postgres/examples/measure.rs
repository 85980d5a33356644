//! Measures the store on a server: `cargo run --release -p incumbent-postgres --example measure --
//! postgres://…`. Its tables are made in the schema `incumbent_measure`, which is dropped.
#![allow(clippy::disallowed_methods)] // Measures, decides nothing.

use std::error::Error;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use incumbent_core::store::{Exchange, Expect, Key, Lane, Put, Read, Stamp, Store, Write};
use incumbent_postgres::PostgresStore;
use tokio_postgres::NoTls;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "postgres://".to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&url))
}

async fn measure(url: &str) -> Outcome<()> {
    let (bare, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::runtime::Handle::current().spawn(async move {
        let _ = connection.await;
    });
    let drop = "DROP SCHEMA IF EXISTS incumbent_measure CASCADE";
    bare.batch_execute(drop).await?;
    let url = format!("{url}?schema=incumbent_measure");
    let (one, two) = (PostgresStore::connect(&url).await?, PostgresStore::connect(&url).await?);
    println!("{:?}", one.facts());
    beats(&one, &bare).await?;
    batches(&one).await?;
    hints(&one, &two).await?;
    bare.batch_execute(drop).await?;
    Ok(())
}

/// A beat beside the least that the server could do: one prepared update by primary key.
async fn beats(store: &PostgresStore, bare: &tokio_postgres::Client) -> Outcome<()> {
    let swap = bare
        .prepare(
            "UPDATE incumbent_measure.incumbent_records SET value = $1, stamp = $2, \
             written = now() WHERE cluster = 'bare' AND key = 'member' AND stamp = $3",
        )
        .await?;
    bare.batch_execute(
        "INSERT INTO incumbent_measure.incumbent_records VALUES ('bare', 'member', '', '0', now())",
    )
    .await?;
    send(store, Lane::Beat, vec![put("member", 0)], two_keys()).await?;
    let (mut plain, mut full) = (Vec::new(), Vec::new());
    for round in 1..=2000_u64 {
        let (value, stamp, before) =
            (format!("{{\"beat\":{round}}}"), round.to_string(), (round - 1).to_string());
        let start = Instant::now();
        bare.execute(&swap, &[&value, &stamp, &before]).await?;
        plain.push(start.elapsed());
        let start = Instant::now();
        send(store, Lane::Beat, vec![put("member", round)], two_keys()).await?;
        full.push(start.elapsed());
    }
    print("bare compare-and-swap", plain);
    print("beat and two reads", full);
    let mut reads = Vec::new();
    for _ in 0..2000 {
        let start = Instant::now();
        send(store, Lane::Watch, vec![], two_keys()).await?;
        reads.push(start.elapsed());
    }
    print("two reads", reads);
    Ok(())
}

async fn batches(store: &PostgresStore) -> Outcome<()> {
    let (mut creations, mut swaps, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..5 {
        for (stage, times) in (0..).zip([&mut creations, &mut swaps]) {
            let writes =
                (0..10_000).map(|number| put(&format!("lease/{round}/{number:05}"), stage));
            let start = Instant::now();
            send(store, Lane::Change, writes.collect(), vec![]).await?;
            times.push(start.elapsed());
        }
        let start = Instant::now();
        let prefix = Read::Prefix(Key::new(&format!("lease/{round}/")));
        send(store, Lane::Watch, vec![], vec![prefix]).await?;
        lists.push(start.elapsed());
    }
    print("10,000 creations in one exchange", creations);
    print("10,000 swaps in one exchange", swaps);
    print("10,000 records below a prefix", lists);
    Ok(())
}

async fn hints(one: &PostgresStore, two: &PostgresStore) -> Outcome<()> {
    let (woken, wait) = mpsc::channel();
    let wake = move || {
        let _ = woken.send(Instant::now());
    };
    let guard = two.hints("measure", Arc::new(wake));
    wait.recv_timeout(Duration::from_secs(5))?;
    send(one, Lane::Change, vec![put("hinted", 0)], vec![]).await?;
    wait.recv_timeout(Duration::from_secs(5))?;
    let mut delays = Vec::new();
    for round in 1..=500 {
        let start = Instant::now();
        send(one, Lane::Change, vec![put("hinted", round)], vec![]).await?;
        let at = wait.recv_timeout(Duration::from_secs(5))?;
        delays.push(at.saturating_duration_since(start));
    }
    drop(guard);
    print("hint after the change was sent", delays);
    Ok(())
}

async fn send(
    store: &PostgresStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Outcome<()> {
    store.exchange("measure", lane, Exchange { writes, reads }).await?;
    Ok(())
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("  {what}: median {:.2?}, p95 {:.2?}, p99 {:.2?}", at(50), at(95), at(99));
}

fn two_keys() -> Vec<Read> {
    ["roster", "board"].map(|key| Read::Key { key: Key::new(key), unless: None }).to_vec()
}

/// Round 0 creates a record, each later round swaps it.
fn put(key: &str, round: u64) -> Write {
    let stamp = |attempt| Stamp { writer: 1, attempt };
    Write::Put(Put {
        key: Key::new(key),
        expect: match round.checked_sub(1) {
            None => Expect::Absent,
            Some(before) => Expect::Version(stamp(before).version()),
        },
        value: format!("{{\"format\":1,\"beat\":{round},\"ttl_ms\":15000}}").into_bytes(),
        stamp: stamp(round),
        hint: key == "hinted",
    })
}
