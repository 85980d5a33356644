//! A transactional outbox on PostgreSQL: an order and its message are committed together, and
//! dispatchers publish every message exactly once in effect, whatever is killed or paused.
//!
//! Each partition of the outbox is a duty, so that one process at a time publishes it, and the
//! assertion of that duty's term is part of the transaction that publishes. See README.md.
#![allow(clippy::disallowed_methods, reason = "a program with one runtime may spawn on it")]

use std::time::Duration;

use incumbent::{BoxError, Duty, Node, family};
use incumbent_fence::Asserted as _;
use tokio_postgres::{Client, NoTls};

/// How many processes can share the work. The partition is stored with each message, so choose once.
const PARTITIONS: i64 = 4;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, customer text NOT NULL);
    -- What is still to be published.
    CREATE TABLE IF NOT EXISTS outbox (
        id bigserial PRIMARY KEY, partition int NOT NULL, body text NOT NULL);
    CREATE INDEX IF NOT EXISTS outbox_partition ON outbox (partition, id);
    -- What consumers read, in the order of its numbers.
    CREATE TABLE IF NOT EXISTS published (
        number bigserial PRIMARY KEY, message bigint NOT NULL, body text NOT NULL)";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let url = std::env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to postgres://…")?;
    let mut arguments = std::env::args().skip(1);
    let (command, number) = (arguments.next(), arguments.next());
    match (command.as_deref(), number) {
        (Some("init"), None) => Ok(connect(&url).await?.batch_execute(TABLES).await?),
        (Some("order"), Some(number)) => order(&url, number.parse()?).await,
        (Some("dispatch"), None) => serve(url).await,
        (Some("count"), None) => count(&url).await,
        _ => Err("usage: outbox init | order NUMBER | dispatch | count".into()),
    }
}

/// Places so many orders, each together with its message.
async fn order(url: &str, number: u32) -> Result<(), BoxError> {
    let mut client = connect(url).await?;
    for customer in 0..number {
        let transaction = client.transaction().await?;
        let insert = "INSERT INTO orders (customer) VALUES ($1) RETURNING id";
        let id: i64 = transaction.query_one(insert, &[&customer.to_string()]).await?.get(0);
        let partition = i32::try_from(id % PARTITIONS)?;
        let body = format!("order {id} was placed");
        let insert = "INSERT INTO outbox (partition, body) VALUES ($1, $2)";
        transaction.execute(insert, &[&partition, &body]).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Publishes, side by side with any number of others.
async fn serve(url: String) -> Result<(), BoxError> {
    // The leases are in the very database that the work writes to. That is what makes it work.
    let store = incumbent::open(&url).await?;
    let node = Node::builder().cluster("outbox").from_env()?.join(store).await?;
    let partitions = (0..PARTITIONS).map(|partition| partition.to_string());
    let dispatching = family("outbox").duties(partitions).run_with(url, dispatch);
    let _serving = node.serve(dispatching)?;
    tokio::signal::ctrl_c().await?;
    node.leave().await?;
    Ok(())
}

/// One partition, while it is this process's.
async fn dispatch(url: String, duty: Duty) -> Result<(), BoxError> {
    let partition: i32 = duty.name().parse()?;
    let mut client = connect(&url).await?;
    while duty.is_held() {
        // In a task of its own, so that a batch that has begun goes on to its end and isn't cut off
        // somewhere in between when the duty is. It may be late then, and only the assertion in it
        // keeps it from doing what somebody else has done already.
        let publishing = tokio::spawn(publish(client, duty.clone(), partition));
        let published;
        (client, published) = publishing.await??;
        if published == 0 {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
                _ = duty.lost() => {}
            }
        }
    }
    Ok(())
}

/// Publishes some messages of a partition, and says how many.
async fn publish(
    mut client: Client,
    duty: Duty,
    partition: i32,
) -> Result<(Client, usize), BoxError> {
    let select = "SELECT id, body FROM outbox WHERE partition = $1 ORDER BY id LIMIT 20";
    let rows = client.query(select, &[&partition]).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get("id")).collect();
    let mut bodies = Vec::new();
    for row in &rows {
        bodies.push(render(row.get("body")).await);
    }
    let transaction = client.transaction().await?;
    if is_fenced() {
        // Fails unless this duty is still ours, and keeps it ours until the commit.
        duty.assert(&transaction).await?;
    }
    let insert =
        "INSERT INTO published (message, body) SELECT * FROM unnest($1::bigint[], $2::text[])";
    transaction.execute(insert, &[&ids, &bodies]).await?;
    transaction.execute("DELETE FROM outbox WHERE id = ANY($1)", &[&ids]).await?;
    transaction.commit().await?;
    Ok((client, rows.len()))
}

/// What takes its time between reading and publishing: a template, a signature, a look-up.
async fn render(body: String) -> String {
    tokio::time::sleep(Duration::from_millis(5)).await;
    format!("{{\"event\": \"{body}\"}}")
}

/// To see what the fence is for, run everything with `OUTBOX_FENCE=off`.
fn is_fenced() -> bool {
    std::env::var("OUTBOX_FENCE").as_deref() != Ok("off")
}

async fn count(url: &str) -> Result<(), BoxError> {
    let counts =
        "SELECT (SELECT count(*) FROM outbox), count(DISTINCT message), count(*) FROM published";
    let row = connect(url).await?.query_one(counts, &[]).await?;
    let (waiting, messages, published): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    let twice = published - messages;
    println!("{waiting} wait, {messages} are published, {twice} of them once too often");
    Ok(())
}

async fn connect(url: &str) -> Result<Client, BoxError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection); // ends with the client
    Ok(client)
}
