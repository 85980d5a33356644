//! Three brokers on one bucket, and a client that follows redirects. Whoever leads is killed, paused
//! and stopped: nothing that was acknowledged is lost, and no two changes have the same revision.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]
#![allow(clippy::disallowed_methods, reason = "a test may wait, and has one runtime")]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use incumbent_proving::Process;
use incumbent_proving::server::azurite;

const PATIENCE: Duration = Duration::from_secs(60);

/// The brokers' addresses as they are now.
type Places = Arc<Mutex<Vec<String>>>;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_while_leaders_are_killed_and_paused() {
    let election = azurite::shared();
    let object = format!("az://incumbent/broker-{}.json", std::process::id());
    let start = |number: usize| start(&election, &object, number);
    let (mut crew, addresses): (Vec<Process>, Vec<String>) = (0..3).map(start).unzip();
    let places: Places = Arc::new(Mutex::new(addresses));
    let over = Arc::new(AtomicBool::new(false));
    let carried_out = Arc::new(AtomicUsize::new(0));
    let working = work(places.clone(), over.clone(), carried_out.clone());
    let client = tokio::runtime::Handle::current().spawn(working);
    for fault in ["kill", "pause", "stop"] {
        more(&carried_out).await;
        let number = leader(&places).await;
        match fault {
            "kill" => crew.remove(number).kill(),
            "stop" => assert!(crew.remove(number).stop().0, "it left in order"),
            _ => {
                crew[number].pause();
                tokio::time::sleep(Duration::from_millis(4500)).await;
                crew[number].resume();
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
        }
        let (process, address) = start(number);
        crew.insert(number, process);
        places.lock().unwrap()[number] = address;
    }
    more(&carried_out).await;
    over.store(true, Ordering::SeqCst);
    let done = tokio::time::timeout(PATIENCE, client).await.unwrap().unwrap();
    let (status, jobs) = ask(&places, "GET", "/jobs").await;
    assert_eq!(status, StatusCode::OK);
    let there = |name: &str| jobs.contains(&format!("\"{name}\":{{"));
    let lost: Vec<&String> = done.added.iter().filter(|name| !there(name)).collect();
    assert!(lost.is_empty(), "{lost:?} were acknowledged and are lost: {jobs}");
    let back: Vec<&String> = done.finished.iter().filter(|name| there(name)).collect();
    assert!(back.is_empty(), "{back:?} were finished and are there again: {jobs}");
    println!(
        "{} added and there, {} finished, {} changes acknowledged",
        done.added.len(),
        done.finished.len(),
        done.revisions.len()
    );
    assert!(done.added.len() > 5 && done.finished.len() > 5, "it worked all the time");
    for process in crew {
        assert!(process.stop().0, "it left in order");
    }
}

/// What was acknowledged.
#[derive(Default)]
struct Done {
    added: BTreeSet<String>,
    finished: BTreeSet<String>,
    revisions: BTreeSet<u64>,
}

/// Adds jobs, and finishes every other one.
async fn work(places: Places, over: Arc<AtomicBool>, carried_out: Arc<AtomicUsize>) -> Done {
    let mut done = Done::default();
    for number in 0.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let name = format!("job-{number}");
        let path = format!("/jobs/{name}");
        done.note(ask(&places, "PUT", &path).await);
        if number % 2 == 0 {
            done.note(ask(&places, "DELETE", &path).await);
            done.finished.insert(name);
        } else {
            done.added.insert(name);
        }
        carried_out.fetch_add(1, Ordering::SeqCst);
    }
    done
}

/// Waits until some more jobs are there.
async fn more(carried_out: &AtomicUsize) {
    let from = carried_out.load(Ordering::SeqCst);
    for _ in 0..600 {
        if carried_out.load(Ordering::SeqCst) >= from + 4 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the client gets nothing done");
}

impl Done {
    fn note(&mut self, (status, text): (StatusCode, String)) {
        assert_eq!(status, StatusCode::OK, "{text}");
        let revision = text.trim().strip_prefix("revision ").expect("a revision").parse().unwrap();
        let last = self.revisions.last().copied().unwrap_or(0);
        assert!(revision > last, "{revision} after {last}: two have written");
        self.revisions.insert(revision);
    }
}

/// Asks one broker after the other, follows redirects, and tries again until it is carried out. All
/// that is asked may be asked twice.
async fn ask(places: &Places, method: &str, path: &str) -> (StatusCode, String) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    for attempt in 0.. {
        assert!(attempt < 600, "{method} {path} is never carried out");
        let place = { places.lock().unwrap()[attempt % 3].clone() };
        let mut url = format!("{place}{path}");
        for _ in 0..5 {
            match once(&client, method, &url).await {
                Some((StatusCode::TEMPORARY_REDIRECT, location)) => url = location,
                Some((status, text)) if status.is_success() => return (status, text),
                Some(_) | None => break,
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    unreachable!("it tries for ever")
}

/// One request: the status, and where it leads or what it says.
async fn once(
    client: &Client<HttpConnector, Body>,
    method: &str,
    url: &str,
) -> Option<(StatusCode, String)> {
    let request = Request::builder().method(method).uri(url).body(Body::from("work")).unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), client.request(request)).await;
    let answer = answer.ok()?.ok()?;
    let status = answer.status();
    if let Some(location) = answer.headers().get("location") {
        return Some((status, location.to_str().unwrap().to_owned()));
    }
    let body = to_bytes(Body::new(answer.into_body()), 1_000_000).await.ok()?;
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}

/// Waits until one of them answers by itself, and says which.
async fn leader(places: &Places) -> usize {
    let client = Client::builder(TokioExecutor::new()).build_http();
    for _ in 0..600 {
        let all = { places.lock().unwrap().clone() };
        for (number, place) in all.iter().enumerate() {
            if let Some((StatusCode::OK, _)) = once(&client, "GET", &format!("{place}/jobs")).await
            {
                return number;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody leads");
}

fn start(election: &str, object: &str, number: usize) -> (Process, String) {
    let (_, rest) = election.split_once("endpoint=").expect("the emulator's URL");
    let endpoint = rest.split('&').next().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_incumbent-example-broker"));
    // A prefix of its own in the bucket.
    let store = election.replacen("/p?", &format!("/broker-{}?", std::process::id()), 1);
    command.env("INCUMBENT_STORE", store).env("INCUMBENT_TTL", "3s");
    command.env("INCUMBENT_NODE", format!("broker-{number}")).env("BROKER_STATE", object);
    command.env("AZURE_STORAGE_USE_EMULATOR", "true").env("AZURITE_BLOB_STORAGE_URL", endpoint);
    let process = Process::start(&mut command);
    let line = process.line();
    let address = line.rsplit(' ').next().unwrap().to_owned();
    (process, address)
}
