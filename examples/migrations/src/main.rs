//! Migrations of a database that run once, by one node, before any node starts.
//!
//! Every process of a deploy runs this at its start. One of them migrates, under a lease and with
//! the assertion of its term in every migration's transaction; the others wait at the gate. If the
//! one dies or hangs, another goes on where it stopped. See README.md.
#![allow(clippy::disallowed_methods, reason = "a program with one runtime may spawn on it")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use incumbent::{BoxError, Leadership, Node};
use incumbent_fence::{Asserted as _, FenceError};
use tokio_postgres::{Client, NoTls};

/// Its number is its place in the directory, by name and from 1 on.
struct Migration {
    number: i32,
    name: String,
    sql: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let url = std::env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to postgres://…")?;
    let directory = std::env::args().nth(1).ok_or("usage: migrations DIRECTORY")?;
    let migrations = read(Path::new(&directory))?;

    let store = incumbent::open(&url).await?; // the leases are in the database that is migrated
    let node = Node::builder().cluster("app").from_env()?.join(store).await?;
    let schema = migrated(&node, &url, &migrations).await?;

    // Here the application starts.
    println!("{} starts with schema {schema}", node.name());
    tokio::signal::ctrl_c().await?;
    node.leave().await?;
    Ok(())
}

/// The gate: returns when all migrations are applied, by whomever.
async fn migrated(node: &Node, url: &str, migrations: &[Migration]) -> Result<i32, BoxError> {
    let wanted = i32::try_from(migrations.len())?;
    let mut campaign = node.campaign("migrations")?;
    loop {
        let mut database = connect(url).await?;
        // More than wanted is fine: a newer version of this program has been here.
        let applied = applied(&database).await?;
        if applied >= wanted {
            return Ok(applied);
        }
        let leadership = tokio::select! {
            elected = campaign.elected() => elected?,
            // Whoever has applied them all may have let go unnoticed.
            () = tokio::time::sleep(Duration::from_millis(500)) => continue,
        };
        match apply(node, &leadership, &mut database, migrations).await {
            Ok(()) => {}
            // Somebody else is at it, or the database ended a transaction that stood still for too
            // long: look again.
            Err(error) if is_superseded(&*error) || database.is_closed() => {
                println!("{} stops: {error}", node.name());
            }
            // A migration that fails: no node should start.
            Err(error) => return Err(error),
        }
    }
}

/// Applies what is missing, each migration in a transaction of its own.
async fn apply(
    node: &Node,
    leadership: &Leadership,
    database: &mut Client,
    migrations: &[Migration],
) -> Result<(), BoxError> {
    let applied = applied(database).await?;
    for Migration { number, name, sql } in migrations.iter().filter(|it| it.number > applied) {
        println!("{} applies {name}", node.name());
        let transaction = database.transaction().await?;
        // Fails unless we lead, and lets nobody else lead before the commit.
        leadership.assert(&transaction).await?;
        let history = "CREATE TABLE IF NOT EXISTS migrations (number int PRIMARY KEY, name text)";
        transaction.batch_execute(history).await?;
        transaction.batch_execute(sql).await?;
        let insert = "INSERT INTO migrations (number, name) VALUES ($1, $2)";
        transaction.execute(insert, &[number, name]).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// The number of the last migration; 0 for an empty database.
async fn applied(database: &Client) -> Result<i32, BoxError> {
    let exists = "SELECT to_regclass('migrations') IS NOT NULL";
    if !database.query_one(exists, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let last = "SELECT coalesce(max(number), 0) FROM migrations";
    Ok(database.query_one(last, &[]).await?.get(0))
}

fn is_superseded(error: &(dyn Error + 'static)) -> bool {
    let fence = error.downcast_ref::<FenceError<tokio_postgres::Error>>();
    matches!(fence, Some(FenceError::Superseded { .. }))
}

fn read(directory: &Path) -> Result<Vec<Migration>, BoxError> {
    let entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let migration = |(number, path): (i32, &std::path::PathBuf)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Migration { number, name, sql: std::fs::read_to_string(path)? })
    };
    (1..).zip(&paths).map(migration).collect()
}

async fn connect(url: &str) -> Result<Client, BoxError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection); // ends with the client
    Ok(client)
}
