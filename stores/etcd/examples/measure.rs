//! Measures a private etcd, or the one whose URL is given:
//! `cargo run --release -p incumbent-etcd --example measure [URL]`.
#![allow(clippy::disallowed_methods)] // Nothing here decides: it measures.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use incumbent_core::store::{
    Exchange, Expect, Key, Lane, Outcome, Put, Read, Stamp, Store, Version, Write,
};
use incumbent_etcd::EtcdStore;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let given = std::env::args().nth(1);
    let private = if given.is_none() { Some(Private::start()?) } else { None };
    let url = match (&given, &private) {
        (Some(url), _) => url.clone(),
        (None, Some(private)) => private.url.clone(),
        (None, None) => return Err("no etcd".into()),
    };
    runtime.block_on(measure(&url))
}

/// One store writes, another listens.
async fn measure(url: &str) -> Result<()> {
    let (one, two) = (connect(url).await?, EtcdStore::connect(url).await?);
    let mut bench = Bench { store: one, cluster: format!("measure-{}", std::process::id()) };
    let two_keys = || ["roster", "board"].map(read).to_vec();

    bench.report("bare compare-and-swap", 500, Lane::Change, |_| vec![], "bare").await?;
    let beat = |_| two_keys();
    bench.report("beat: one write and two reads", 500, Lane::Beat, beat, "member").await?;
    bench
        .time("two reads", 1000, async |bench, _| {
            bench.send(Lane::Watch, vec![], two_keys()).await.map(drop)
        })
        .await?;
    bench
        .time("126 new records in one exchange", 20, async |bench, round| {
            let key = |n| format!("lease/{round}/{n}");
            let writes = (0..126).map(|n| put(&key(n), Expect::Absent, false)).collect();
            bench.send(Lane::Change, writes, vec![]).await.map(drop)
        })
        .await?;
    bench
        .time("2,520 records below a prefix", 10, async |bench, _| {
            let prefix = Read::Prefix(Key::new("lease/"));
            bench.send(Lane::Watch, vec![], vec![prefix]).await.map(drop)
        })
        .await?;

    let (woken, wait) = mpsc::channel();
    let wake = move || {
        let _ = woken.send(Instant::now());
    };
    let _guard = two.hints(&bench.cluster, Arc::new(wake));
    wait.recv_timeout(Duration::from_secs(5))?;
    let mut version = None;
    let mut delays = Vec::new();
    for _ in 0..200 {
        // A hint may well come before the acknowledgement.
        let sent = Instant::now();
        version = Some(bench.swap(Lane::Change, "hinted", version, true, vec![]).await?);
        let at = wait.recv_timeout(Duration::from_secs(5))?;
        delays.push(at.saturating_duration_since(sent));
    }
    print("hinted write, until another store is woken", delays);
    Ok(())
}

async fn connect(url: &str) -> Result<EtcdStore> {
    for _ in 0..100 {
        if let Ok(store) = EtcdStore::connect(url).await {
            return Ok(store);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(EtcdStore::connect(url).await?)
}

struct Bench {
    store: EtcdStore,
    cluster: String,
}

impl Bench {
    async fn send(&self, lane: Lane, writes: Vec<Write>, reads: Vec<Read>) -> Result<Vec<Outcome>> {
        let exchange = Exchange { writes, reads };
        Ok(self.store.exchange(&self.cluster, lane, exchange).await?.writes)
    }

    async fn swap(
        &self,
        lane: Lane,
        key: &str,
        from: Option<Version>,
        hint: bool,
        reads: Vec<Read>,
    ) -> Result<Version> {
        let expect = from.map_or(Expect::Absent, Expect::Version);
        match self.send(lane, vec![put(key, expect, hint)], reads).await?.pop() {
            Some(Outcome::Applied(version)) => Ok(version),
            other => Err(format!("{other:?} came of a swap of {key}").into()),
        }
    }

    /// Swaps one record over and over.
    async fn report(
        &mut self,
        what: &str,
        rounds: u64,
        lane: Lane,
        reads: impl Fn(u64) -> Vec<Read>,
        key: &str,
    ) -> Result<()> {
        let mut version = None;
        let mut times = Vec::new();
        for round in 0..rounds {
            let start = Instant::now();
            version = Some(self.swap(lane, key, version, false, reads(round)).await?);
            times.push(start.elapsed());
        }
        print(what, times);
        Ok(())
    }

    async fn time(
        &mut self,
        what: &str,
        rounds: u64,
        work: impl AsyncFn(&Bench, u64) -> Result<()>,
    ) -> Result<()> {
        let mut times = Vec::new();
        for round in 0..rounds {
            let start = Instant::now();
            work(self, round).await?;
            times.push(start.elapsed());
        }
        print(what, times);
        Ok(())
    }
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    let (median, high) = (at(50), times.last().copied().unwrap_or_default());
    println!("{what}: median {median:.1?}, p99 {:.1?}, longest {high:.1?}", at(99));
}

fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

fn put(key: &str, expect: Expect, hint: bool) -> Write {
    let value = b"{\"format\":1,\"beat\":1,\"ttl_ms\":15000,\"state\":\"alive\"}".to_vec();
    let stamp = Stamp { writer: 1, attempt: 1 };
    Write::Put(Put { key: Key::new(key), expect, value, stamp, hint })
}

/// An etcd on free ports that ends with this program.
struct Private {
    url: String,
    process: Child,
    _directory: tempfile::TempDir,
}

impl Private {
    fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let port = || -> Result<u16> {
            Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
        };
        let (client, peer) = (port()?, port()?);
        let urls = [client, peer].map(|port| format!("http://127.0.0.1:{port}"));
        let [client_url, peer_url] = &urls;
        let process = Command::new("etcd")
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(["--listen-client-urls", client_url, "--advertise-client-urls", client_url])
            .args(["--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url])
            .args(["--initial-cluster", &format!("default={peer_url}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!("etcd can't be started: {error}. Install it, or name a URL")
            })?;
        Ok(Self { url: format!("etcd://127.0.0.1:{client}"), process, _directory: directory })
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
