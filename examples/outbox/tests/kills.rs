//! Three dispatchers that are killed and paused while orders come in: every message is published
//! exactly once in effect. Without the fence the same run publishes some twice, so that it is known
//! what is tested.
//!
//! `INCUMBENT_TEST_FULL=1` plays 200 faults instead of 6, and `INCUMBENT_TEST_ROUNDS` any number.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]
#![allow(clippy::disallowed_methods, reason = "a test may wait, and has one runtime")]

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use incumbent_proving::server::postgres;
use incumbent_proving::{Process, Server};
use tokio_postgres::{Client, NoTls};

const PROGRAM: &str = env!("CARGO_BIN_EXE_incumbent-example-outbox");

/// The shortest that is allowed.
const TTL: Duration = Duration::from_secs(3);

/// Always more than can be published at once, so that whoever is struck has something in hand.
const MORE: &str = "WITH placed AS (
        INSERT INTO orders (customer) SELECT number FROM generate_series(1, 1000) AS number
        WHERE (SELECT count(*) FROM outbox) < 1000 RETURNING id)
    INSERT INTO outbox (partition, body) SELECT id % 4, 'order ' || id FROM placed";

#[test]
fn every_message_is_published_exactly_once_in_effect() {
    let outcome = play("fenced", true);
    println!("with the fence: {outcome:?}");
    assert_eq!((outcome.waiting, outcome.missing, outcome.duplicates), (0, 0, 0), "{outcome:?}");
    assert!(outcome.messages > 100, "{outcome:?}");
}

#[test]
fn without_the_fence_messages_are_published_twice() {
    let outcome = play("unfenced", false);
    println!("without the fence: {outcome:?}");
    assert_eq!((outcome.waiting, outcome.missing), (0, 0), "{outcome:?}");
    assert!(outcome.duplicates > 0, "the other test would pass without a fence: {outcome:?}");
}

#[derive(Debug)]
#[allow(dead_code, reason = "it is printed")]
struct Outcome {
    faults: u32,
    messages: i64,
    waiting: i64,
    missing: i64,
    duplicates: i64,
}

/// Orders come in while one dispatcher after the other is killed or paused.
fn play(name: &str, fenced: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let url = runtime.block_on(database(name));
    run(&url, &["init"]);
    let mut crew: Vec<Process> = (0..3).map(|number| dispatcher(&url, number, fenced)).collect();
    let faults = faults();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let ordering = std::thread::spawn({
        let url = url.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let client = connect(&url).await;
                while stopped.try_recv().is_err() {
                    client.batch_execute(MORE).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        }
    });
    // They have begun when something is published.
    runtime.block_on(until(&url, "SELECT count(*) > 0 FROM published"));
    for fault in 0..faults {
        let number = fault as usize % crew.len();
        // A kill after two pauses.
        if fault % 3 == 2 {
            crew.remove(number).kill();
            crew.insert(number, dispatcher(&url, number, fenced));
            std::thread::sleep(Duration::from_millis(500));
        } else {
            crew[number].pause();
            // Others take over, and publish what it had in hand.
            std::thread::sleep(TTL + Duration::from_millis(1500));
            crew[number].resume();
        }
    }
    stop.send(()).unwrap();
    ordering.join().unwrap();
    runtime.block_on(until(&url, "SELECT count(*) = 0 FROM outbox"));
    for dispatcher in crew {
        assert!(dispatcher.stop().0, "it left in order");
    }
    runtime.block_on(outcome(&url, faults))
}

async fn outcome(url: &str, faults: u32) -> Outcome {
    let client = connect(url).await;
    let number = async |sql: &str| -> i64 { client.query_one(sql, &[]).await.unwrap().get(0) };
    Outcome {
        faults,
        messages: number("SELECT count(*) FROM orders").await,
        waiting: number("SELECT count(*) FROM outbox").await,
        missing: number(
            "SELECT (SELECT count(*) FROM orders) - count(DISTINCT message) FROM published",
        )
        .await,
        duplicates: number("SELECT count(*) - count(DISTINCT message) FROM published").await,
    }
}

fn dispatcher(url: &str, number: usize, fenced: bool) -> Process {
    let mut command = Command::new(PROGRAM);
    command.arg("dispatch").env("DATABASE_URL", url);
    command.env("INCUMBENT_NODE", format!("outbox-{number}")).env("INCUMBENT_TTL", "3s");
    if !fenced {
        command.env("OUTBOX_FENCE", "off");
    }
    Process::start(&mut command)
}

fn run(url: &str, arguments: &[&str]) {
    let done = Command::new(PROGRAM).args(arguments).env("DATABASE_URL", url).status().unwrap();
    assert!(done.success(), "{arguments:?}");
}

/// A new database.
async fn database(name: &str) -> String {
    // Three nodes have more connections than a server that others use too may have left.
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(|| postgres::start(&["max_connections=100"]));
    let url = postgres::url(server, "postgres");
    let name = format!("outbox_{name}_{}", std::process::id());
    let client = connect(&url).await;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

async fn until(url: &str, sql: &str) {
    let client = connect(url).await;
    for _ in 0..600 {
        if client.query_one(sql, &[]).await.unwrap().get(0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never came true: {sql}");
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::runtime::Handle::current().spawn(connection);
    client
}

fn faults() -> u32 {
    if let Ok(rounds) = std::env::var("INCUMBENT_TEST_ROUNDS") {
        return rounds.parse().unwrap();
    }
    if std::env::var("INCUMBENT_TEST_FULL").is_ok() { 200 } else { 6 }
}
