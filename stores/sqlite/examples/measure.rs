//! Measures the store on the disk of a directory: `cargo run --release --example measure -- DIR`.
#![allow(clippy::disallowed_methods)] // Measures, decides nothing.

use std::error::Error;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use incumbent_core::store::{Exchange, Expect, Key, Lane, Put, Read, Stamp, Store, Write};
use incumbent_sqlite::{SqliteOptions, SqliteStore, Synchronous};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let place = tempfile::tempdir_in(directory)?;
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        let path = place.path().join(format!("{synchronous:?}.db"));
        let options = SqliteOptions::new(path).synchronous(synchronous);
        println!("synchronous {synchronous:?}");
        measure(&SqliteStore::open(options.clone())?, &SqliteStore::open(options)?)?;
    }
    Ok(())
}

fn measure(one: &SqliteStore, two: &SqliteStore) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let send = |store: &SqliteStore, lane, writes, reads| {
        runtime.block_on(store.exchange("measure", lane, Exchange { writes, reads }))
    };
    let two_keys = || ["roster", "board"].map(read).to_vec();

    send(one, Lane::Beat, vec![put("member", 0)], two_keys())?;
    report("beat and two reads", 500, |round| {
        send(one, Lane::Beat, vec![put("member", round)], two_keys())?;
        Ok(())
    })?;
    report("two reads", 2000, |_| {
        send(one, Lane::Watch, vec![], two_keys())?;
        Ok(())
    })?;
    report("1,000 new records in one exchange", 10, |round| {
        let writes = (0..1000).map(|number| put(&format!("lease/{round}/{number}"), 0)).collect();
        send(one, Lane::Change, writes, vec![])?;
        Ok(())
    })?;
    report("10,000 records below a prefix", 10, |_| {
        send(one, Lane::Watch, vec![], vec![Read::Prefix(Key::new("lease/"))])?;
        Ok(())
    })?;

    let (woken, wait) = mpsc::channel();
    let wake = move || {
        let _ = woken.send(Instant::now());
    };
    let _guard = two.hints("measure", Arc::new(wake));
    send(one, Lane::Change, vec![put("hinted", 0)], vec![])?;
    let mut delays = Vec::new();
    for round in 1..=200 {
        send(one, Lane::Change, vec![put("hinted", round)], vec![])?;
        let acknowledged = Instant::now();
        let at = wait.recv_timeout(Duration::from_secs(5))?;
        delays.push(at.saturating_duration_since(acknowledged));
    }
    print("hint after the acknowledgement", delays);
    Ok(())
}

fn report(what: &str, rounds: u64, mut work: impl FnMut(u64) -> Outcome<()>) -> Outcome<()> {
    let mut times = Vec::new();
    for round in 1..=rounds {
        let start = Instant::now();
        work(round)?;
        times.push(start.elapsed());
    }
    print(what, times);
    Ok(())
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let (median, high) = (at(50), times.last().copied().unwrap_or_default());
    println!("  {what}: median {median:.1?}, p95 {:.1?}, longest {high:.1?}", at(95));
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
