//! Backups that are moved into the place of a SQLite database while nodes use it, and logs and indexes that
//! are removed beside it: never two commands at once, and nobody is killed by it. `INCUMBENT_TEST_FULL=1`
//! plays 60 rounds.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "this is test code, helpers too")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::runs::{Run, Stage, pause, until};

/// Says if another command still has the lock, and keeps it for as long as it lives.
const COMMAND: &str = r#"
    exec 8>>command.lock
    flock -n 8 || echo "overlap $INCUMBENT_TERM" >> "$LOG"
    echo "start $INCUMBENT_TERM" >> "$LOG"
    exec sleep 600"#;

const FLAGS: &[&str] = &["-q", "--ttl", "3s", "--restart", "--grace", "1s"];

/// What somebody does who doesn't stop the nodes first.
#[derive(Clone, Copy, Debug)]
enum Restore {
    /// The database, and at once what belongs to the old one.
    AtOnce,
    /// What belongs to the old one stays beside the new one for so many milliseconds.
    Late(u64),
    /// Log and index first.
    LogFirst,
    /// The index alone, and the application, which never looks at such things, makes it anew.
    IndexAlone,
}

const RESTORES: [Restore; 6] = [
    Restore::Late(20),
    Restore::IndexAlone,
    Restore::Late(800),
    Restore::AtOnce,
    Restore::Late(200),
    Restore::LogFirst,
];

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Restore {
    fn play(self, database: &Path, backup: &Path) {
        let new = beside(database, "-new");
        fs::copy(backup, &new).unwrap();
        let remove = |suffix| {
            // Others may have been quicker.
            let _ = fs::remove_file(beside(database, suffix));
        };
        match self {
            Self::AtOnce | Self::Late(_) => {
                fs::rename(&new, database).unwrap();
                if let Self::Late(millis) = self {
                    pause(Duration::from_millis(millis));
                }
                remove("-wal");
                remove("-shm");
            }
            Self::LogFirst => {
                remove("-wal");
                remove("-shm");
                fs::rename(&new, database).unwrap();
            }
            Self::IndexAlone => {
                remove("-shm");
                // Makes another index, and keeps it there.
                let application = rusqlite::Connection::open(database).unwrap();
                for _ in 0..300 {
                    let count = "SELECT count(*) FROM incumbent_records";
                    let _: rusqlite::Result<i64> =
                        application.query_row(count, [], |row| row.get(0));
                    pause(Duration::from_millis(5));
                }
            }
        }
    }
}

/// Whether SQLite itself says so.
fn is_damaged(database: &Path) -> bool {
    let checked = rusqlite::Connection::open(database).and_then(|connection| {
        connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
    });
    match checked {
        Ok(said) => said != "ok",
        Err(error) => {
            let code = error.sqlite_error_code();
            matches!(
                code,
                Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
            )
        }
    }
}

#[test]
fn o47_restores_under_running_nodes_make_no_second_leader_and_kill_nobody() {
    let stage = Stage::with_store();
    let rounds =
        if std::env::var_os("INCUMBENT_TEST_FULL").is_some() { 60 } else { RESTORES.len() };
    let mut runs: Vec<Run> = (0..3).map(|_| stage.start(FLAGS, COMMAND)).collect();
    stage.log.until("start");
    let backup = stage.trial.path().join("backup.db");
    let connection = rusqlite::Connection::open(stage.file()).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection.execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
    drop(connection);
    for (round, restore) in RESTORES.iter().cycle().take(rounds).enumerate() {
        restore.play(&stage.file(), &backup);
        // Long enough for whoever lost its trust, and for whoever waits for that.
        pause(Duration::from_millis(4500));
        let said = stage.log.lines();
        assert!(
            !said.iter().any(|line| line.starts_with("overlap")),
            "{round} {restore:?}: {said:?}"
        );
        for run in &mut runs {
            let ended = run.0.try_wait().unwrap();
            assert!(ended.is_none(), "{round} {restore:?}: {ended:?}");
        }
    }
    let starts = stage.log.count("start");
    // Whoever leads now is ended, and another goes on: the store works.
    drop(runs.remove(0));
    drop(runs.remove(0));
    // Where the log of one database was left beside another, SQLite may have mixed the two: nothing can be led
    // in a damaged file until it is restored in order. Its lock isn't tried here: that would be in its way.
    let last = format!(":{}", runs.last().unwrap().pid());
    until("the last one leads", || {
        let leader = stage.trial.run(&["leader", "job"]);
        (leader.stdout.contains(&last) || is_damaged(&stage.file())).then_some(())
    });
    let damaged = if is_damaged(&stage.file()) { ", damaged by SQLite" } else { "" };
    println!("{rounds} restores, {starts} starts, no overlap{damaged}");
}
