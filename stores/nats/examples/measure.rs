//! Measures the store on a server: `cargo run --release --example measure -- nats://host:4222`.
//! It uses the bucket `incumbent-measure` there and removes it at the end.
#![allow(clippy::disallowed_methods)] // Measures, decides nothing.

use std::error::Error;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use incumbent_core::store::{
    Exchange, Expect, Key, Lane, Outcome, Put, Read, Stamp, Store, StoreError, Version, Write,
};
use incumbent_nats::NatsStore;
use tokio::runtime::Runtime;

type Done<T> = Result<T, Box<dyn Error>>;

const BUCKET: &str = "incumbent-measure";

fn main() -> Done<()> {
    let base = std::env::args().nth(1).unwrap_or_else(|| "nats://127.0.0.1:4222".to_owned());
    let url = format!("{base}?bucket={BUCKET}");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build()?;
    let remove = || -> Done<()> {
        let client = runtime.block_on(async_nats::connect(&base))?;
        let request = client.request(format!("$JS.API.STREAM.DELETE.KV_{BUCKET}"), "".into());
        runtime.block_on(request)?;
        Ok(())
    };
    remove()?;
    let stores = runtime.block_on(async {
        Ok::<_, StoreError>((NatsStore::connect(&url).await?, NatsStore::connect(&url).await?))
    })?;
    println!("{:?}", stores.0.facts());
    bare(&runtime, &base)?;
    measure(&runtime, &stores.0, &stores.1)?;
    drop(stores);
    remove()
}

/// A compare-and-swap with nothing around it.
fn bare(runtime: &Runtime, url: &str) -> Done<()> {
    let client = runtime.block_on(async_nats::connect(url))?;
    let mut last = 0_u64;
    report("bare compare-and-swap", 1000, |_| {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", last.to_string().as_str());
        let subject = format!("$KV.{BUCKET}.bare");
        let request = client.request_with_headers(subject, headers, value(0).into());
        let answer = runtime.block_on(request)?;
        let text = String::from_utf8_lossy(&answer.payload).into_owned();
        let digits = text.split("\"seq\":").nth(1).unwrap_or_default();
        last =
            digits.trim().chars().take_while(char::is_ascii_digit).collect::<String>().parse()?;
        Ok(())
    })
}

fn measure(runtime: &Runtime, one: &NatsStore, two: &NatsStore) -> Done<()> {
    let send = |store: &NatsStore, lane, writes, reads| -> Done<Option<Version>> {
        let exchange = Exchange { writes, reads };
        let reply = runtime.block_on(store.exchange("measure", lane, exchange))?;
        match reply.writes.into_iter().next() {
            Some(Outcome::Applied(version)) => Ok(Some(version)),
            Some(other) => Err(format!("a write was answered with {other:?}").into()),
            None => Ok(None),
        }
    };
    let two_keys = || ["roster", "board"].map(read).to_vec();

    let mut last = send(one, Lane::Beat, vec![put("member/a", None)], two_keys())?;
    report("beat and two reads", 1000, |_| {
        last = send(one, Lane::Beat, vec![put("member/a", last.take())], two_keys())?;
        Ok(())
    })?;
    report("two reads", 1000, |_| send(one, Lane::Watch, vec![], two_keys()).map(drop))?;
    report("1,000 new records in one exchange", 10, |round| {
        let writes = (0..1000).map(|number| put(&format!("lease/{round}/{number}"), None));
        send(one, Lane::Change, writes.collect(), vec![]).map(drop)
    })?;
    report("10,000 records below a prefix", 5, |_| {
        send(one, Lane::Watch, vec![], vec![Read::Prefix(Key::new("lease/"))]).map(drop)
    })?;
    report("delete", 200, |round| {
        let delete = Write::Delete(Key::new(&format!("lease/1/{round}")));
        let exchange = Exchange { writes: vec![delete], reads: vec![] };
        runtime.block_on(one.exchange("measure", Lane::Change, exchange))?;
        Ok(())
    })?;

    let (woken, wait) = mpsc::channel();
    let wake = move || {
        let _ = woken.send(Instant::now());
    };
    let _guard = two.hints("measure", Arc::new(wake));
    // The wake-up that says that the subscription is there.
    wait.recv_timeout(Duration::from_secs(5))?;
    let mut last = send(one, Lane::Change, vec![put("hinted", None)], vec![])?;
    wait.recv_timeout(Duration::from_secs(5))?;
    let mut delays = Vec::new();
    for _ in 0..200 {
        last = send(one, Lane::Change, vec![put("hinted", last)], vec![])?;
        let acknowledged = Instant::now();
        let at = wait.recv_timeout(Duration::from_secs(5))?;
        delays.push(at.saturating_duration_since(acknowledged));
    }
    print("hint after the acknowledgement", delays);
    Ok(())
}

fn report(what: &str, rounds: u64, mut work: impl FnMut(u64) -> Done<()>) -> Done<()> {
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
    let high = times.last().copied().unwrap_or_default();
    println!("  {what}: median {:.1?}, p99 {:.1?}, longest {high:.1?}", at(50), at(99));
}

fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

fn put(key: &str, last: Option<Version>) -> Write {
    Write::Put(Put {
        key: Key::new(key),
        expect: last.map_or(Expect::Absent, Expect::Version),
        value: value(1).into_bytes(),
        stamp: Stamp { writer: 1, attempt: 1 },
        hint: key == "hinted",
    })
}

fn value(beat: u64) -> String {
    format!("{{\"format\":1,\"beat\":{beat},\"ttl_ms\":15000}}")
}
