//! An advisory lock of PostgreSQL that a connection holds. There is no ttl: the lock ends with the connection.

use anyhow::Result;
use telling::Task;
use tokio_postgres::{Client, NoTls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let task = Task::read()?;
    task.begin();
    tokio::select! {
        () = contend(&task) => Ok(()),
        ended = telling::terminated() => ended,
    }
}

async fn contend(task: &Task) {
    loop {
        if term(task).await.is_err() {
            tokio::time::sleep(task.retry()).await;
        }
    }
}

/// A connection for each lease, because a connection waits for one at a time. Only one lease is asked for.
async fn term(task: &Task) -> Result<()> {
    for lease in task.leases() {
        let client = connect(&task.url).await?;
        client.query("SELECT pg_advisory_lock(hashtext($1))", &[&lease]).await?;
        task.lead(&lease, || !client.is_closed()).await;
    }
    Ok(())
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
