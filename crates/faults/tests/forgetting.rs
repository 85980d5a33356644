//! Stores that lose what they acknowledged, under processes that have seen it: a file is removed or
//! replaced by an older copy, a server starts again empty or with an older snapshot, tables are
//! dropped and made anew. Who knew better never leads beside another, and no term comes again (O6).
//!
//! `INCUMBENT_TEST_FULL=1` plays five rounds instead of two, and `INCUMBENT_TEST_ROUNDS` any number.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "this is test code")]
#![allow(dead_code, unreachable_pub, reason = "this is test code")]

#[path = "../../../stores/mysql/tests/common/server.rs"]
mod mysql_server;
#[path = "../../../stores/nats/tests/common/server.rs"]
mod nats_server;
#[path = "../../../stores/postgres/tests/common/server.rs"]
mod postgres_server;
#[path = "../../../stores/redis/tests/common/server.rs"]
mod redis_server;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent_proving::Fleet;
use mysql_async::prelude::Queryable as _;
use rustix::process::Signal;

/// A name that no other test uses.
fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("forgets_{}_{}_", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// A store that can be made to forget.
struct Forgetful<'a> {
    url: String,
    /// Keeps what there is now for later, where that is how it forgets.
    keep: Box<dyn Fn() + 'a>,
    /// Loses what was written since, or everything.
    forget: Box<dyn Fn() + 'a>,
}

impl<'a> Forgetful<'a> {
    fn new(url: String, forget: impl Fn() + 'a) -> Self {
        Self { url, keep: Box::new(|| {}), forget: Box::new(forget) }
    }

    fn keeping(self, keep: impl Fn() + 'a) -> Self {
        Self { keep: Box::new(keep), ..self }
    }
}

#[test]
fn a_sqlite_file_that_is_removed() {
    let file = File::new();
    play(&Forgetful::new(file.url(), || {
        file.remove_log();
        std::fs::remove_file(file.path("cluster.db")).unwrap();
    }));
}

#[test]
fn a_sqlite_file_that_is_replaced_by_an_older_copy() {
    let file = File::new();
    let (copy, spare) = (file.path("copy.db"), file.path("spare.db"));
    let replaced = Forgetful::new(file.url(), || {
        std::fs::copy(&copy, &spare).unwrap();
        file.remove_log();
        std::fs::rename(&spare, file.path("cluster.db")).unwrap();
    });
    play(&replaced.keeping(|| {
        let _ = std::fs::remove_file(&copy);
        file.connection().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    }));
}

#[test]
fn a_redis_that_starts_again_empty() {
    let server = redis_server::Server::start(&NO_LOG);
    play(&Forgetful::new(server.url(), || restart(&server)));
}

#[test]
fn a_redis_that_starts_again_with_an_older_snapshot() {
    let server = redis_server::Server::start(&NO_LOG);
    let restarted = Forgetful::new(server.url(), || restart(&server));
    play(&restarted.keeping(|| drop(server.command(&["SAVE"]))));
}

#[test]
fn a_nats_server_that_starts_again_without_its_bucket() {
    let server = nats_server::Server::start();
    play(&Forgetful::new(server.fresh_url(), || {
        server.wipe();
        server.resume();
    }));
}

#[test]
fn postgres_tables_that_are_dropped_and_made_anew() {
    let url = postgres_server::shared();
    play(&Forgetful::new(url.clone(), || drop_postgres_tables(&url)));
}

#[test]
fn mariadb_tables_that_are_dropped_and_made_anew() {
    let url = mysql_server::shared();
    play(&Forgetful::new(url.clone(), || drop_mariadb_tables(&url)));
}

#[test]
fn a_sqlite_file_that_is_emptied_twice() {
    let file = File::new();
    play_twice(&Forgetful::new(file.url(), || {
        file.connection().execute("DELETE FROM incumbent_records", []).unwrap();
    }));
}

#[test]
fn a_redis_that_is_emptied_twice() {
    let server = redis_server::Server::start(&NO_LOG);
    play_twice(&Forgetful::new(server.url(), || drop(server.command(&["FLUSHALL"]))));
}

/// Three candidates, of which one leads and two wait, while the store forgets again and again.
fn play(store: &Forgetful<'_>) {
    let histories = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_candidate");
    let mut fleet = Fleet::start(program, histories.path(), &store.url, 3);
    let rounds = rounds();
    for _ in 0..rounds {
        // Past what the store will go back to, and past term 1, which a new one begins with.
        for turn in 0..3 {
            let leader = fleet.next_leader();
            if turn == 0 {
                (store.keep)();
            }
            fleet.pause(Duration::from_millis(200));
            fleet.tell_to_resign(leader);
        }
        fleet.next_leader();
        // All have seen that somebody leads.
        fleet.pause(Duration::from_millis(1500));
        (store.forget)();
        let grown = fleet.next_election();
        // Long enough for everybody to see who leads now.
        fleet.pause(Duration::from_secs(2));
        if !grown {
            break;
        }
    }
    let histories = fleet.stop();
    let account = incumbent_proving::check(&histories).unwrap_or_else(|violation| {
        panic!("{violation}");
    });
    println!("{rounds} rounds: {account:?}");
    assert!(account.terms as u64 > 3 * rounds, "hardly anybody was elected: {account:?}");
}

/// The store forgets, and forgets again what was written since, just when the first loss has been
/// waited out: whoever was elected in between has only what is lost, and a leader that stood still
/// before the first loss has had its term extended by a beat that is lost too.
fn play_twice(store: &Forgetful<'_>) {
    let ttl = Duration::from_secs(1);
    let histories = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_candidate");
    let mut fleet = Fleet::start(program, histories.path(), &store.url, 4);
    let rounds = 3 * rounds();
    for round in 0..rounds {
        let leader = fleet.next_leader();
        fleet.pause(ttl * 3 / 2);
        fleet.signal(leader, Signal::STOP);
        fleet.pause(ttl * 95 / 100);
        fleet.signal(leader, Signal::CONT);
        fleet.pause(ttl / 20);
        (store.forget)();
        // The second loss comes a little earlier or later each time.
        fleet.pause(ttl + ttl * u32::try_from(round % 3).unwrap() / 20);
        (store.forget)();
        fleet.pause(ttl * 4);
    }
    let histories = fleet.stop();
    let account = incumbent_proving::check(&histories).unwrap_or_else(|violation| {
        panic!("{violation}");
    });
    println!("{rounds} rounds: {account:?}");
    assert!(account.terms as u64 > rounds, "hardly anybody was elected: {account:?}");
}

fn rounds() -> u64 {
    if let Some(rounds) = std::env::var("INCUMBENT_TEST_ROUNDS").ok().and_then(|it| it.parse().ok())
    {
        return rounds;
    }
    if std::env::var("INCUMBENT_TEST_FULL").is_ok() { 5 } else { 2 }
}

/// A SQLite file in a directory of its own.
struct File(tempfile::TempDir);

impl File {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.path("cluster.db").display())
    }

    fn connection(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path("cluster.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    /// Nodes may notice at once, and whoever closes the last connection removes them too.
    fn remove_log(&self) {
        for name in ["cluster.db-wal", "cluster.db-shm"] {
            let _ = std::fs::remove_file(self.path(name));
        }
    }
}

/// What makes Redis keep nothing by itself.
const NO_LOG: [&str; 2] = ["--appendonly", "no"];

fn restart(server: &redis_server::Server) {
    server.kill();
    server.resume();
}

fn drop_postgres_tables(url: &str) {
    let (server, schema) = url.rsplit_once("schema=").unwrap();
    let server = server.trim_end_matches(['?', '&']);
    run(async {
        let connected = tokio_postgres::connect(server, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        let connection = tokio::runtime::Handle::current().spawn(connection);
        client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
        drop(client);
        let _ = connection.await;
    });
    // Opening a store makes what is missing.
    drop(incumbent::open(url).wait().unwrap());
}

fn drop_mariadb_tables(url: &str) {
    let (server, prefix) = url.rsplit_once("prefix=").unwrap();
    run(async {
        let server = server.trim_end_matches(['?', '&']);
        let mut connection = mysql_async::Conn::from_url(server).await.unwrap();
        for table in ["records", "meta"] {
            connection.query_drop(format!("DROP TABLE {prefix}{table}")).await.unwrap();
        }
        connection.disconnect().await.unwrap();
    });
    drop(incumbent::open(url).wait().unwrap());
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work);
}
