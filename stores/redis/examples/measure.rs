//! Measures the store on a server: `cargo run --release --example measure -- redis://127.0.0.1`.
//!
//! It writes below the prefix `measure`, and removes what it wrote. Nothing else should use the
//! server meanwhile, for bytes and commands are counted there.
#![allow(clippy::disallowed_methods)] // Measures, decides nothing.

use std::error::Error;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use incumbent::Node;
use incumbent_core::store::{Exchange, Expect, Key, Lane, Put, Read, Stamp, Store, Write};
use incumbent_redis::{RedisOptions, RedisStore};
use redis::aio::MultiplexedConnection;

type Outcome<T> = Result<T, Box<dyn Error>>;

const BARE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                    redis.call('SET', KEYS[1], ARGV[2]) return 1 else return 0 end";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let options = RedisOptions::parse(&url)?.prefix("measure");
    let one = RedisStore::connect_with(options.clone()).await?;
    let two = RedisStore::connect_with(options.clone()).await?;
    let mut operator = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    clean(&mut operator).await?;
    beats_beside_bare(&one, &mut operator).await?;
    exchanges(&one).await?;
    hints(&one, &two).await?;
    hand_overs(one.clone(), two.clone()).await?;
    for leases in [0, 1, 10_000] {
        beats(&options, &mut operator, leases).await?;
    }
    clean(&mut operator).await
}

/// Removes what this run wrote, or an earlier one that didn't end.
async fn clean(operator: &mut MultiplexedConnection) -> Outcome<()> {
    let mut keys = vec!["measure:bare".to_owned()];
    for name in ["exchanges", "hints", "hand-overs", "beats-0", "beats-1", "beats-10000"] {
        keys.extend(["records", "keys"].map(|key| format!("{{measure:{name}}}:{key}")));
    }
    Ok(redis::cmd("DEL").arg(&keys).exec_async(operator).await?)
}

/// A beat, and what Redis itself takes to compare and swap by a script, by turns.
async fn beats_beside_bare(
    store: &RedisStore,
    operator: &mut MultiplexedConnection,
) -> Outcome<()> {
    let script = redis::Script::new(BARE);
    redis::cmd("SET").arg("measure:bare").arg(0).exec_async(operator).await?;
    let (mut bare, mut plain, mut beats) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..5000_u64 {
        let mut call = script.key("measure:bare");
        call.arg(round).arg(round + 1);
        let start = Instant::now();
        let swapped: i64 = call.invoke_async(operator).await?;
        bare.push(start.elapsed());
        assert_eq!(swapped, 1, "somebody else writes measure:bare");
        plain.push(send(store, Lane::Beat, vec![put("plain", round)], vec![]).await?);
        beats.push(send(store, Lane::Beat, vec![put("member", round)], two_keys()).await?);
    }
    print("bare compare-and-swap", bare);
    print("beat alone", plain);
    print("beat and two reads", beats);
    Ok(())
}

fn two_keys() -> Vec<Read> {
    ["roster", "board"].map(read).to_vec()
}

async fn exchanges(store: &RedisStore) -> Outcome<()> {
    let mut times = Vec::new();
    for _ in 0..3000 {
        times.push(send(store, Lane::Watch, vec![], two_keys()).await?);
    }
    print("two reads", times);
    let mut times = Vec::new();
    for round in 0..10 {
        let writes = (0..1000).map(|number| put(&format!("lease/{round}/{number}"), 0)).collect();
        times.push(send(store, Lane::Change, writes, vec![]).await?);
    }
    print("1,000 new records in one exchange", times);
    let mut times = Vec::new();
    for _ in 0..10 {
        let all = vec![Read::Prefix(Key::new("lease/"))];
        times.push(send(store, Lane::Watch, vec![], all).await?);
    }
    print("10,000 records below a prefix", times);
    Ok(())
}

async fn send(
    store: &RedisStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Outcome<Duration> {
    let start = Instant::now();
    store.exchange("exchanges", lane, Exchange { writes, reads }).await?;
    Ok(start.elapsed())
}

async fn hints(one: &RedisStore, two: &RedisStore) -> Outcome<()> {
    let (woken, wait) = mpsc::channel();
    let wake = move || {
        let _ = woken.send(Instant::now());
    };
    let _guard = two.hints("hints", Arc::new(wake));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut delays = Vec::new();
    for round in 0..=1000 {
        while wait.try_recv().is_ok() {}
        let start = Instant::now();
        let writes = vec![put("hinted", round)];
        one.exchange("hints", Lane::Change, Exchange { writes, reads: vec![] }).await?;
        let at = loop {
            match wait.try_recv() {
                Ok(at) => break at,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        delays.push(at.saturating_duration_since(start));
    }
    print("hint, since the change was sent", delays);
    Ok(())
}

/// Two nodes hand one lease to and fro.
async fn hand_overs(one: RedisStore, two: RedisStore) -> Outcome<()> {
    let builder = |name| Node::builder().cluster("hand-overs").name(name).membership(false);
    let nodes = [builder("one").join(one).await?, builder("two").join(two).await?];
    let mut takes = Vec::new();
    for round in 0..200 {
        let mut campaign = nodes[0].campaign(format!("lease-{round}"))?;
        let start = Instant::now();
        let leadership = campaign.elected().await?;
        takes.push(start.elapsed());
        drop((leadership, campaign));
    }
    print("take of a new lease, from campaign() on", takes);
    let mut hand_overs = Vec::new();
    let mut holder = nodes[0].campaign("lease")?;
    let mut leadership = holder.elected().await?;
    for round in 0..500 {
        let other = if round % 2 == 0 { &nodes[1] } else { &nodes[0] };
        let mut next = other.campaign("lease")?;
        let early = tokio::time::timeout(Duration::from_millis(20), next.elected()).await;
        assert!(early.is_err(), "nobody freed it");
        let start = Instant::now();
        drop(holder);
        drop(leadership);
        leadership = next.elected().await?;
        hand_overs.push(start.elapsed());
        holder = next;
    }
    print("clean hand-over, from dropping the leadership on", hand_overs);
    drop((leadership, holder));
    for node in nodes {
        node.leave().await?;
    }
    Ok(())
}

/// Commands and bytes of a node with so many leases, counted by the server.
async fn beats(
    options: &RedisOptions,
    operator: &mut MultiplexedConnection,
    leases: usize,
) -> Outcome<()> {
    let store = RedisStore::connect_with(options.clone()).await?;
    let node = Node::builder().cluster(format!("beats-{leases}")).name("node").membership(false);
    let node = node.ttl(Duration::from_secs(3)).join(store).await?;
    let began = Instant::now();
    let mut held = Vec::new();
    for number in 0..leases {
        let mut campaign = node.campaign(format!("lease-{number}"))?;
        held.push((campaign.elected().await?, campaign));
    }
    let took = began.elapsed();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = counted(operator).await?;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let after = counted(operator).await?;
    // Asking for the numbers costs something itself.
    let asking = counted(operator).await?;
    let calls = after.0 - before.0;
    let own = (asking.1 - after.1, asking.2 - after.2);
    let up = (after.1 - before.1).saturating_sub(own.0) / calls.max(1);
    let down = (after.2 - before.2).saturating_sub(own.1) / calls.max(1);
    println!(
        "{leases} leases: {calls} calls in 20 s, each {up} bytes up, {down} down ({took:.1?} to take them)"
    );
    drop(held);
    node.leave().await?;
    Ok(())
}

/// Calls of scripts, bytes received and bytes sent so far.
async fn counted(operator: &mut MultiplexedConnection) -> Outcome<(u64, u64, u64)> {
    let text: String = redis::cmd("INFO").arg("everything").query_async(operator).await?;
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let digits = line.map(|line| line.chars().take_while(char::is_ascii_digit).collect());
        digits.and_then(|digits: String| digits.parse().ok()).unwrap_or(0)
    };
    let bytes = (number("total_net_input_bytes:"), number("total_net_output_bytes:"));
    Ok((number("cmdstat_evalsha:calls="), bytes.0, bytes.1))
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("{what}: median {:.1?}, p95 {:.1?}, p99 {:.1?}", at(50), at(95), at(99));
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
        hint: key == "hinted",
    })
}
