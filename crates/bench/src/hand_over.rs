//! A clean hand-over between two processes on one SQLite file, against a bare commit.

use std::path::Path;

use anyhow::Result;
use incumbent::clock;
use rusqlite::Connection;

use crate::partner::{self, Partner};
use crate::report::Report;
use crate::spread::Spread;

/// A hand-over that took longer than this was not pushed.
const POLLED: f64 = 500_000.0;

pub(crate) fn measure(hand_overs: usize, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let mut players = [Partner::player(&url, "bench", "a")?, Partner::player(&url, "bench", "b")?];
    let bare = bare(&directory.path().join("bare.db"))?;
    let (mut times, mut commits) = (Vec::new(), Vec::new());
    for number in 0..hand_overs {
        let [holder, waiter] = &mut players;
        let (holder, waiter) = if number % 2 == 0 { (holder, waiter) } else { (waiter, holder) };
        times.push(partner::hand_over(holder, waiter, &format!("lease-{number}"))?);
        commits.push(commit(&bare)?);
    }
    let (times, commits) = (Spread::new(times), Spread::new(commits));
    let unit = commits.median();
    let polled = times.above(POLLED) as f64;
    report.add("commit_us", "bare commit on SQLite, median", unit, "us");
    report.add("commit_p99_us", "  p99", commits.quantile(0.99), "us");
    report.add("hand_overs", "clean hand-overs between two processes", times.len() as f64, "");
    report.add("hand_over_us", "  median", times.median(), "us");
    report.add("hand_over_p99_us", "  p99", times.quantile(0.99), "us");
    report.add("hand_over_ratio", "  median in bare commits", times.median() / unit, "commits");
    let ratio = times.quantile(0.99) / unit;
    report.add_with_goal(
        "hand_over_p99_ratio",
        "  p99 in bare commits",
        ratio,
        "commits",
        "20 or less",
    );
    let ratio = times.quantile(0.99) / commits.quantile(0.99);
    report.add("hand_over_p99_to_p99", "  p99 in bare commits at their own p99", ratio, "commits");
    report.add_with_goal(
        "hand_overs_polled",
        "  slower than half a second: no push",
        polled,
        "",
        "0",
    );
    Ok(())
}

/// A file with one row, and the durability that the store has by default.
fn bare(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full;
         CREATE TABLE bare (number INTEGER); INSERT INTO bare VALUES (0);",
    )?;
    Ok(connection)
}

/// Microseconds of one commit.
fn commit(connection: &Connection) -> Result<f64> {
    let before = clock::now();
    connection.execute("UPDATE bare SET number = number + 1", [])?;
    Ok(clock::now().since(before).as_nanos() as f64 / 1000.0)
}
