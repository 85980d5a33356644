//! Jobs by cron expressions on SQLite, of which no tick is lost and none is done twice in effect,
//! whichever process is stopped, killed or paused.
//!
//! The library runs each tick at least once. What makes it exactly once in effect is one transaction
//! with the assertion of the run's term, the tick itself as a key, and the work. See README.md.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use incumbent::{BoxError, CatchUp, Node, Run, Schedule};
use incumbent_fence::sqlite;
use rusqlite::{Connection, Transaction};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, cents INTEGER NOT NULL);
    INSERT OR IGNORE INTO account VALUES ('savings', 0);
    -- What was done: a tick of a job is here once, or not at all.
    CREATE TABLE IF NOT EXISTS done (
        job TEXT, tick INTEGER, node TEXT, PRIMARY KEY (job, tick)) WITHOUT ROWID";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: scheduler FILE [CRON EXPRESSION]";
    let path = PathBuf::from(arguments.next().ok_or(usage)?);
    let expression = arguments.next().unwrap_or_else(|| "*/5 * * * * *".to_owned());

    // The lease is in the very file that the work writes to.
    let store = incumbent::open(&format!("sqlite:{}", path.display())).await?;
    connect(&path)?.execute_batch(TABLES)?;
    let node = Node::builder().cluster("scheduler").from_env()?.join(store).await?;
    let name = node.name().to_owned();

    // Ticks that nobody ran, because all were down, get a run each: the last thousand of them.
    let schedule = Schedule::cron(&expression)?.catch_up(CatchUp::Each { most: 1000 });
    let _interest = node.periodic_blocking("interest", schedule, move |run| {
        let done = once(&path, &run, "interest", &name, |transaction| {
            transaction
                .execute("UPDATE account SET cents = cents + 1 WHERE name = 'savings'", [])?;
            Ok(())
        })?;
        println!("{name}: {} {}", tick(&run)?, if done { "paid" } else { "was paid before" });
        run.complete(); // even if it was told to stop meanwhile
        Ok(())
    })?;

    tokio::signal::ctrl_c().await?;
    node.leave().await?; // a run that is under way may end, and another process takes over
    Ok(())
}

/// Does the work of a tick, unless it is done already. Says whether it did.
fn once(
    path: &Path,
    run: &Run,
    job: &str,
    node: &str,
    work: impl FnOnce(&Transaction<'_>) -> Result<(), BoxError>,
) -> Result<bool, BoxError> {
    let tick = tick(run)?;
    // Asserts the run's term, and is rolled back if it takes longer: everybody's beats wait for it.
    sqlite::transaction(&mut connect(path)?, run, Duration::from_millis(300), |transaction| {
        // A run that was done but not recorded, because its process died just then, comes again.
        let insert = "INSERT OR IGNORE INTO done VALUES (?1, ?2, ?3)";
        let new = transaction.execute(insert, (job, tick, node))? == 1;
        if new {
            work(transaction)?;
        }
        Ok(new)
    })
}

/// The time for which the run is, in seconds since 1970.
fn tick(run: &Run) -> Result<i64, BoxError> {
    Ok(run.scheduled().duration_since(UNIX_EPOCH)?.as_secs().try_into()?)
}

fn connect(path: &Path) -> Result<Connection, BoxError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    Ok(connection)
}
