//! Four nodes in two zones own 64 shards while clients count. A new version is deployed beside them,
//! the old nodes are stopped, one of the new is killed and one is paused: every shard is owned again,
//! on the new version, and no count that was acknowledged is lost.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]
#![allow(clippy::disallowed_methods, reason = "a test may wait, and has one runtime")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use incumbent::{Cluster, DutyCondition, DutyStanding, Owners};
use incumbent_proving::Process;
use incumbent_route::KeyRouter;
use rusqlite::Connection;

const PROGRAM: &str = env!("CARGO_BIN_EXE_incumbent-example-shards");

#[tokio::test(flavor = "multi_thread")]
async fn shards_survive_a_deploy_a_kill_and_a_pause() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shards.db");
    let old: Vec<Process> = (0..4).map(|number| start(&file, number, "1")).collect();
    let store = incumbent::open_to_look(&format!("sqlite:{}", file.display())).await.unwrap();
    let cluster = Cluster::new(store, "shards").unwrap();
    let even = |duties: &[DutyStanding]| {
        let loads = loads(duties);
        // Zones are even, and so are the nodes of each; nobody has more than its capacity.
        loads.len() == 4 && loads.values().all(|load| (14..=18).contains(load))
    };
    until(&cluster, "all run version 1 evenly", |duties| all_on("1", duties) && even(duties)).await;

    let owners = cluster.owners("shard").unwrap();
    owners.looked().await;
    let over = Arc::new(AtomicBool::new(false));
    let counting = tokio::runtime::Handle::current().spawn(count(owners.clone(), over.clone()));

    let mut new: Vec<Process> = (4..8).map(|number| start(&file, number, "2")).collect();
    until(&cluster, "all run version 2", |duties| all_on("2", duties)).await;
    for process in old {
        assert!(process.stop().0, "it left in order");
    }
    new.remove(0).kill();
    until(&cluster, "three run what four did", |duties| {
        all_on("2", duties)
            && loads(duties).len() == 3
            && loads(duties).values().all(|load| *load <= 40)
    })
    .await;
    new[0].pause();
    tokio::time::sleep(Duration::from_millis(4500)).await;
    new[0].resume();
    until(&cluster, "all run again", |duties| all_on("2", duties)).await;

    let shown = Command::new(PROGRAM).args(["where", file.to_str().unwrap(), "key-1"]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    let shard = router().duty("key-1").unwrap().to_owned();
    assert!(shown.starts_with(&format!("key-1 is in shard {shard} on node-")), "{shown}");

    over.store(true, Ordering::SeqCst);
    let counts = counting.await.unwrap();
    for process in new {
        assert!(process.stop().0, "it left in order");
    }
    check(&file, &counts);
}

/// How often each key was counted: surely, and at most.
type Counts = BTreeMap<String, (i64, i64)>;

/// Counts keys in turn, each where its owner is known to be.
async fn count(owners: Owners, over: Arc<AtomicBool>) -> Counts {
    let (router, mut counts) = (router(), Counts::new());
    let client = Client::builder(TokioExecutor::new()).build_http();
    for number in 0.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let key = format!("key-{}", number % 20);
        let owner = owners.owner(router.duty(&key).unwrap()).and_then(|known| known.owner);
        let Some(address) = owner.and_then(|owner| owner.address) else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let count = counts.entry(key.clone()).or_default();
        count.1 += 1;
        let request = Request::post(format!("http://{address}/keys/{key}"));
        let sent = client.request(request.body(Body::empty()).unwrap());
        let answer = tokio::time::timeout(Duration::from_secs(2), sent).await;
        if let Ok(Ok(answer)) = answer
            && answer.status() == StatusCode::OK
        {
            let told = to_bytes(Body::new(answer.into_body()), 1000).await.unwrap();
            let told: i64 = String::from_utf8_lossy(&told).trim().parse().unwrap();
            count.0 += 1;
            assert!(told >= count.0, "{key} was counted {} times, and is at {told}", count.0);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    counts
}

fn check(file: &Path, counts: &Counts) {
    let connection = Connection::open(file).unwrap();
    let mut sure = 0;
    for (key, (least, most)) in counts {
        let sql = "SELECT coalesce(sum(count), 0) FROM counters WHERE key = ?1";
        let count: i64 = connection.query_row(sql, [key], |row| row.get(0)).unwrap();
        assert!(
            (*least..=*most).contains(&count),
            "{key}: {least} were acknowledged, {count} are there, {most} were sent"
        );
        sure += least;
    }
    println!("{sure} counts acknowledged, none lost");
    assert!(sure > 20, "{counts:?}");
}

fn router() -> KeyRouter {
    KeyRouter::over((0..64).map(|shard| shard.to_string()))
}

fn all_on(version: &str, duties: &[DutyStanding]) -> bool {
    let runs = |duty: &DutyStanding| {
        duty.condition == DutyCondition::Active && duty.version.as_deref() == Some(version)
    };
    duties.len() == 64 && duties.iter().all(runs)
}

fn loads(duties: &[DutyStanding]) -> BTreeMap<&str, usize> {
    let mut loads = BTreeMap::new();
    for node in duties.iter().filter_map(|duty| duty.node.as_deref()) {
        *loads.entry(node).or_default() += 1;
    }
    loads
}

async fn until(cluster: &Cluster, what: &str, holds: impl Fn(&[DutyStanding]) -> bool) {
    let mut last = Vec::new();
    for _ in 0..600 {
        if let Ok(duties) = cluster.duties().await {
            if holds(&duties) {
                return;
            }
            last = duties;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never came true: {what}; {:?}", loads(&last));
}

/// Even ones are in the east.
fn start(file: &Path, number: usize, version: &str) -> Process {
    let zone = if number.is_multiple_of(2) { "east" } else { "west" };
    let mut command = Command::new(PROGRAM);
    command.arg("node").arg(file).args([zone, version]);
    command.env("INCUMBENT_NODE", format!("node-{number}")).env("INCUMBENT_TTL", "3s");
    let process = Process::start(&mut command);
    assert!(process.line().contains("listens"));
    process
}
