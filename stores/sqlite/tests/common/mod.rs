//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use incumbent_core::store::{
    Exchange, Found, Lane, Outcome, Read, Record, Reply, Store, StoreError, Write,
};
use incumbent_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub use incumbent_proving::store::numbered::{
    applied, beat, change, create, put, stamp, version, with_value,
};
pub use incumbent_proving::store::{Hints, read};

/// A new file in a directory that goes away with the test.
pub struct Place {
    pub directory: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("app.db")
    }

    /// Fast, because most tests don't cut the power.
    pub fn options(&self) -> SqliteOptions {
        SqliteOptions::new(self.path()).synchronous(incumbent_sqlite::Synchronous::Normal)
    }

    pub fn store(&self) -> SqliteStore {
        SqliteStore::open(self.options()).expect("the store opens")
    }

    /// A connection as the application would have one.
    pub fn application(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).expect("the application opens its file")
    }

    pub fn log(&self) -> PathBuf {
        self.directory.path().join("app.db-wal")
    }

    /// Waits until no connection is open any more.
    ///
    /// Whoever closes the last one removes the log; but when several close at once none may be
    /// the last, so this opens another that is.
    pub fn wait_until_closed(&self) {
        eventually("the connections' end", || {
            let connection = self.application();
            connection
                .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
                .expect("a read");
            drop(connection);
            !self.log().exists()
        });
    }

    pub fn remove_files(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let path = self.directory.path().join(format!("app.db{suffix}"));
            std::fs::remove_file(path).expect("the file was there");
        }
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future)
}

pub fn send(
    store: &SqliteStore,
    cluster: &str,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    block_on(store.exchange(cluster, lane, Exchange { writes, reads }))
}

pub fn write(store: &SqliteStore, cluster: &str, write: Write) -> Result<Outcome, StoreError> {
    send(store, cluster, Lane::Change, vec![write], vec![]).map(|mut reply| reply.writes.remove(0))
}

pub fn find(store: &SqliteStore, cluster: &str, key: &str) -> Option<Record> {
    let found = send(store, cluster, Lane::Watch, vec![], vec![read(key)]).expect("a read");
    match found.reads.into_iter().next() {
        Some(Found::Record(record)) => Some(record),
        Some(Found::Absent) => None,
        other => panic!("unexpected {other:?}"),
    }
}

/// Waits for something that must come, for a long time at most.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    panic!("{what} didn't come true");
}

/// The variable that tells a process that it is a child, and which.
pub const ROLE: &str = "INCUMBENT_SQLITE_TEST_ROLE";
/// The variable that tells a child where its files are.
pub const DIRECTORY: &str = "INCUMBENT_SQLITE_TEST_DIRECTORY";

/// This test program again, to run nothing but its test `child_process` in the given role.
pub fn child(role: &str, place: &Place) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    as_child(&mut command, role, place);
    command
}

/// The same inside a mount namespace of its own, after a shell command that mounts things.
/// `None` where this process may not do that.
pub fn child_with_mounts(mounts: &str, role: &str, place: &Place) -> Option<Command> {
    let allowed = |arguments: &[&str]| {
        let status = Command::new("unshare").args(arguments).arg("true").status();
        status.is_ok_and(|status| status.success())
    };
    let flags = [&["--mount"][..], &["--mount", "--map-root-user"][..]];
    let flags = flags.into_iter().find(|flags| allowed(flags))?;
    let mut command = Command::new("unshare");
    command.args(flags).arg("sh");
    after(&mut command, mounts, role, place);
    Some(command)
}

/// Sees that a child has done all that its role asks for.
pub fn assert_done(role: &str, output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("done: {role}")), "{text}");
}

/// The same after a shell command in the directory of the files.
pub fn child_after(first: &str, role: &str, place: &Place) -> Command {
    let mut command = Command::new("sh");
    after(&mut command, first, role, place);
    command
}

fn after(command: &mut Command, first: &str, role: &str, place: &Place) {
    let script = format!("set -e; cd \"${DIRECTORY}\"; {first}\nexec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(std::env::current_exe().expect("this program"));
    as_child(command, role, place);
}

fn as_child(command: &mut Command, role: &str, place: &Place) {
    command
        .args(["--exact", "child_process", "--ignored", "--nocapture", "--quiet"])
        .env(ROLE, role)
        .env(DIRECTORY, place.directory.path());
}

/// The role of this process if it is a child, and its database.
pub fn role() -> Option<(String, PathBuf)> {
    let role = std::env::var(ROLE).ok()?;
    let directory = std::env::var_os(DIRECTORY)?;
    Some((role, PathBuf::from(directory).join("app.db")))
}
