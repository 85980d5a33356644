//! Four processes start at once. Whoever migrates is killed in the middle, then whoever goes on is
//! paused: every migration is applied exactly once, and nobody starts before the last one.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]
#![allow(clippy::disallowed_methods, reason = "a test may wait, and has one runtime")]

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use incumbent_proving::server::postgres;
use incumbent_proving::{Process, Server};
use tokio_postgres::{Client, NoTls};

const PROGRAM: &str = env!("CARGO_BIN_EXE_incumbent-example-migrations");

/// Twice as many cents each, and slow enough to be struck in the middle.
const SLOW: &str = "UPDATE accounts SET cents = cents * 2; SELECT pg_sleep(1.5);";

#[test]
fn each_migration_runs_once_before_any_node_starts() {
    let directory = tempfile::tempdir().unwrap();
    let shown = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for entry in std::fs::read_dir(shown).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
    }
    for number in 4..7 {
        std::fs::write(directory.path().join(format!("000{number}-slow.sql")), SLOW).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let url = runtime.block_on(database());
    let start = |number| start(&url, directory.path(), number);
    let mut crew: Vec<(usize, Process)> = (0..4).map(|number| (number, start(number))).collect();

    let killed = applying(&crew, "0004-slow.sql");
    crew.remove(killed).1.kill();
    let paused = applying(&crew, "0005-slow.sql");
    crew[paused].1.pause();
    let (_, asleep) = crew.remove(paused);
    let last = applying(&crew, "0006-slow.sql");
    asleep.resume();
    crew.push((9, asleep));
    for (_, process) in &crew {
        let line = lines_until(process, "starts");
        assert!(line.ends_with("starts with schema 6"), "{line}");
    }
    // A late one has nothing to do.
    let late = start(7);
    assert_eq!(late.line(), "app-7 starts with schema 6");
    let (balances, history) = runtime.block_on(async {
        let client = connect(&url).await;
        let balances = "SELECT count(*) FROM accounts WHERE cents = 80000 AND owner = 'nobody'";
        let history = "SELECT count(*) FROM migrations";
        let number = async |sql| client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
        (number(balances).await, number(history).await)
    });
    assert_eq!((balances, history), (10, 6), "100 · 100 · 2 · 2 · 2, each once; {last}");
    assert!(late.stop().0);
    for (_, process) in crew {
        assert!(process.stop().0, "it left in order");
    }
}

#[test]
fn a_migration_that_fails_lets_nobody_start() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("1.sql"), "CREATE TABLE a (b int)").unwrap();
    std::fs::write(directory.path().join("2.sql"), "no SQL at all").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let url = runtime.block_on(database());
    for _ in 0..2 {
        let ended = command(&url, directory.path(), 1).output().unwrap();
        assert!(!ended.status.success());
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("syntax error"), "{said}");
        assert!(!String::from_utf8_lossy(&ended.stdout).contains("starts"));
    }
}

/// Who says first that it applies this migration.
fn applying(crew: &[(usize, Process)], name: &str) -> usize {
    for _ in 0..1200 {
        for (place, (_, process)) in crew.iter().enumerate() {
            while let Some(line) = process.line_within(Duration::from_millis(10)) {
                assert!(!line.contains("starts"), "too early: {line}");
                if line.ends_with(name) {
                    return place;
                }
            }
        }
    }
    panic!("nobody applies {name}");
}

fn lines_until(process: &Process, word: &str) -> String {
    loop {
        let line = process.line();
        if line.contains(word) {
            return line;
        }
    }
}

fn start(url: &str, directory: &Path, number: usize) -> Process {
    Process::start(&mut command(url, directory, number))
}

fn command(url: &str, directory: &Path, number: usize) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg(directory).env("DATABASE_URL", url);
    command.env("INCUMBENT_NODE", format!("app-{number}")).env("INCUMBENT_TTL", "3s");
    command
}

/// A new database.
async fn database() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // Four nodes have more connections than a server that others use too may have left.
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(|| postgres::start(&["max_connections=100"]));
    let url = postgres::url(server, "postgres");
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("migrations_{}_{number}", std::process::id());
    let client = connect(&url).await;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::runtime::Handle::current().spawn(connection);
    client
}
