//! Fenced transactions race against take-overs, in every kind of transaction.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::{Place, stamp, write};
use incumbent_core::store::{Expect, Key, Outcome, Put, Version, Write};
use incumbent_proving::race::{Leader, Taker, Tally, race, transactions};
use incumbent_sqlite::SqliteStore;
use rusqlite::{Connection, Error};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fence {
    Assert,
    /// A look at the lease in an attached file, in a deferred transaction.
    Attached,
    /// The assertion, and nobody looks whether it failed.
    Ignored,
}

/// One connection that commits a row under a term, if its fence lets it.
fn leader(place: &Place, fence: Fence, begin: &'static str) -> Leader {
    let connection = Connection::open(work(place, fence)).expect("a connection");
    connection.busy_timeout(Duration::from_secs(10)).expect("patience");
    if fence == Fence::Attached {
        let attach = "ATTACH DATABASE ?1 AS lease";
        connection.execute(attach, [place.path().display().to_string()]).expect("it attaches");
    }
    Box::new(move |term| {
        let done = transaction(&connection, fence, begin, term);
        if done.is_err() && !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").expect("a rollback");
        }
        done.is_ok_and(|committed| committed)
    })
}

fn work(place: &Place, fence: Fence) -> std::path::PathBuf {
    match fence {
        Fence::Attached => place.directory.path().join("work.db"),
        Fence::Assert | Fence::Ignored => place.path(),
    }
}

fn transaction(
    connection: &Connection,
    fence: Fence,
    begin: &str,
    term: u64,
) -> Result<bool, Error> {
    let term = term.cast_signed();
    connection.execute_batch(begin)?;
    let assert = "INSERT INTO incumbent_assert VALUES ('c', 'scheduler', ?1)";
    match fence {
        Fence::Assert => {
            connection.execute(assert, [term])?;
        }
        Fence::Attached => {
            let sql = "SELECT count(*) FROM lease.incumbent_leases WHERE cluster = 'c' \
                       AND name = 'scheduler' AND term = ?1 AND holder IS NOT NULL";
            if connection.query_row(sql, [term], |row| row.get::<_, i64>(0))? == 0 {
                connection.execute_batch("ROLLBACK")?;
                return Ok(false);
            }
        }
        Fence::Ignored => {
            let _ = connection.execute(assert, [term]);
        }
    }
    connection.execute("INSERT INTO work (term) VALUES (?1)", [term])?;
    thread::park_timeout(Duration::from_micros(1500));
    connection.execute_batch("COMMIT")?;
    Ok(true)
}

struct Successor {
    store: SqliteStore,
    application: Connection,
    version: Version,
    attempt: u64,
}

impl Successor {
    fn new(place: &Place, path: &Path) -> Self {
        let store = place.store();
        let application = Connection::open(path).expect("a connection");
        application.busy_timeout(Duration::from_secs(10)).expect("patience");
        let table = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
                     CREATE TABLE work (term INTEGER)";
        application.execute_batch(table).expect("a table");
        let mut this = Self { store, application, version: Version::new(""), attempt: 0 };
        let member = "{\"state\":\"alive\",\"ttl_ms\":5000}";
        this.put("member/m", &Expect::Absent, member);
        this.put("lease/scheduler", &Expect::Absent, &lease(1));
        this
    }

    fn put(&mut self, key: &str, expect: &Expect, value: &str) {
        loop {
            self.attempt += 1;
            let (key, value) = (Key::new(key), value.as_bytes().to_vec());
            let put = Put {
                key,
                expect: expect.clone(),
                value,
                stamp: stamp(self.attempt),
                hint: false,
                durable: true,
            };
            // Busy is the only thing that is wrong here.
            if let Ok(outcome) = write(&self.store, "c", Write::Put(put)) {
                assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
                break;
            }
        }
        self.version = stamp(self.attempt).version();
    }
}

fn lease(term: u64) -> String {
    format!(
        "{{\"format\":1,\"name\":\"scheduler\",\"term\":{term},\
         \"holder\":{{\"member\":\"m\",\"node\":\"n{term}\"}}}}"
    )
}

impl Taker for Successor {
    fn take(&mut self, term: u64) {
        self.put("lease/scheduler", &Expect::Version(self.version.clone()), &lease(term));
    }

    fn committed(&mut self) -> BTreeMap<u64, u64> {
        let mut statement = self
            .application
            .prepare("SELECT term, count(*) FROM work GROUP BY term")
            .expect("a statement");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        let number = |number: i64| number.cast_unsigned();
        let rows = rows.map(|row| row.expect("a row"));
        rows.map(|(term, count)| (number(term), number(count))).collect()
    }
}

fn run(fence: Fence, begin: &'static str) -> Tally {
    let place = Place::new();
    let mut successor = Successor::new(&place, &work(&place, fence));
    let leaders = (0..4).map(|_| leader(&place, fence, begin)).collect();
    let tally = race(transactions(), leaders, &mut successor);
    println!("sqlite, {begin}, {fence:?}: {tally}");
    tally
}

#[test]
fn no_stale_commit_in_any_kind_of_transaction_and_weaker_fences_let_some_through() {
    for begin in ["BEGIN DEFERRED", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] {
        let tally = run(Fence::Assert, begin);
        assert_eq!(tally.stale, 0, "{begin}: {tally}");
        assert!(tally.committed > 20 && tally.refused > 0, "no race: {begin}: {tally}");
    }
    // The same race shows what others let through, so it can show something.
    let attached = run(Fence::Attached, "BEGIN DEFERRED");
    assert!(attached.stale > 0, "{attached}");
    let ignored = run(Fence::Ignored, "BEGIN IMMEDIATE");
    assert!(ignored.stale > 0, "{ignored}");
}
