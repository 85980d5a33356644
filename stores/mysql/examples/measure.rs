//! Measures the store on a server: `cargo run --release --example measure -- mysql://…`.
//!
//! Its records are deleted afterwards; its tables, `incumbent_measure_…`, stay.
#![allow(clippy::disallowed_methods)] // Measures, decides nothing.

use std::error::Error;
use std::time::{Duration, Instant};

use incumbent_core::store::{Exchange, Expect, Key, Lane, Put, Read, Reply, Stamp, Store, Write};
use incumbent_mysql::{MysqlOptions, MysqlStore};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Statement};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).ok_or("give the URL of a database: mysql://user@host/db")?;
    // As the library does it: one thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&url))
}

async fn measure(url: &str) -> Outcome<()> {
    let options = MysqlOptions::parse(url)?.prefix("incumbent_measure_")?;
    let start = Instant::now();
    let store = MysqlStore::open(options.clone()).await?;
    println!("connected in {:.1?}", start.elapsed());
    println!("{:?}", store.capabilities());
    let reads = || vec![read("roster/m"), read("board")];
    let mut bare = Bare::new(url).await?;
    let [mut trips, mut swaps, mut beats] = [const { Vec::new() }; 3];
    // By turns, because a disk has its moods.
    for round in 0..500 {
        trips.push(bare.round_trip().await?);
        swaps.push(bare.swap(round).await?);
        beats.push(timed(&store, Lane::Beat, vec![put("member/m", round)], reads()).await?);
    }
    bare.end().await?;
    print("bare round trip", trips);
    print("bare compare-and-swap", swaps);
    print("beat and two reads", beats);
    let mut times = Vec::new();
    for _ in 0..500 {
        times.push(timed(&store, Lane::Watch, vec![], reads()).await?);
    }
    print("two reads", times);
    let mut times = Vec::new();
    for round in 0..200 {
        times.push(timed(&store, Lane::Change, vec![put("lease/x", round)], vec![]).await?);
    }
    print("take", times);
    let mut times = Vec::new();
    for round in 0..3 {
        let leases = (0..10_000).map(|number| put(&format!("lease/{number:05}"), round)).collect();
        times.push(timed(&store, Lane::Change, leases, vec![]).await?);
    }
    print("10,000 writes in one exchange", times);
    let mut times = Vec::new();
    for _ in 0..10 {
        let all = vec![Read::Prefix(Key::new("lease/"))];
        times.push(timed(&store, Lane::Watch, vec![], all).await?);
    }
    print("10,000 records below a prefix", times);
    let keys = ["member/m", "lease/x"].map(str::to_owned).into_iter();
    let keys = keys.chain((0..10_000).map(|number| format!("lease/{number:05}")));
    let deletes: Vec<_> = keys.map(|key| Write::Delete(Key::new(&key))).collect();
    for some in deletes.chunks(5000) {
        send(&store, Lane::Change, some.to_vec(), vec![]).await?;
    }
    Ok(())
}

/// What the server needs for nothing, and for a compare-and-swap without anything around it.
struct Bare {
    conn: Conn,
    statement: Statement,
}

impl Bare {
    const TABLE: &str = "incumbent_measure_bare";

    async fn new(url: &str) -> Outcome<Self> {
        let base = url.split('?').next().unwrap_or(url).replace("mariadb://", "mysql://");
        let opts = OptsBuilder::from_opts(Opts::from_url(&base)?).prefer_socket(false);
        let (mut conn, table) = (Conn::new(opts).await?, Self::TABLE);
        let columns = "id INT PRIMARY KEY, value VARCHAR(100), stamp INT";
        conn.query_drop(format!("CREATE TABLE IF NOT EXISTS {table} ({columns})")).await?;
        conn.query_drop(format!("REPLACE INTO {table} VALUES (1, '', 0)")).await?;
        let swap = format!("UPDATE {table} SET value = ?, stamp = ? WHERE id = 1 AND stamp = ?");
        let statement = conn.prep(swap).await?;
        Ok(Self { conn, statement })
    }

    async fn round_trip(&mut self) -> Outcome<Duration> {
        let start = Instant::now();
        self.conn.ping().await?;
        Ok(start.elapsed())
    }

    async fn swap(&mut self, round: u64) -> Outcome<Duration> {
        let start = Instant::now();
        self.conn.exec_drop(&self.statement, ("{\"beat\":1}", round + 1, round)).await?;
        Ok(start.elapsed())
    }

    async fn end(mut self) -> Outcome<()> {
        self.conn.query_drop(format!("DROP TABLE {}", Self::TABLE)).await?;
        Ok(self.conn.disconnect().await?)
    }
}

async fn send(
    store: &MysqlStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Outcome<Reply> {
    Ok(store.exchange("measure", lane, Exchange { writes, reads }).await?)
}

async fn timed(
    store: &MysqlStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Outcome<Duration> {
    let start = Instant::now();
    send(store, lane, writes, reads).await?;
    Ok(start.elapsed())
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let (median, high) = (at(50), times.last().copied().unwrap_or_default());
    println!("  {what}: median {median:.1?}, p99 {:.1?}, longest {high:.1?}", at(99));
}

fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
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
        hint: false,
    })
}
