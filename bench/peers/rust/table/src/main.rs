//! The lease table of the blog posts: one row a lease, one statement that takes and renews it, a third of the
//! ttl between renewals and a tenth between attempts.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::Result;
use telling::Task;
use tokio_postgres::{Client, NoTls};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS lease_table \
    (name text PRIMARY KEY, holder text NOT NULL, expires timestamptz NOT NULL)";
const TAKE: &str = "INSERT INTO lease_table VALUES ($1, $2, now() + $3 * interval '1 ms') \
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires \
    WHERE lease_table.expires < now() OR lease_table.holder = excluded.holder";
const FREE: &str = "DELETE FROM lease_table WHERE name = $1 AND holder = $2";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let task = Rc::new(Task::read()?);
    let client = connect(&task.url).await?;
    client.batch_execute(TABLE).await?;
    let client = Rc::new(std::cell::RefCell::new(Rc::new(client)));
    task.begin();
    let local = tokio::task::LocalSet::new();
    for lease in task.leases() {
        let (task, client) = (Rc::clone(&task), Rc::clone(&client));
        local.spawn_local(async move {
            loop {
                contend(&task, &lease, &client).await;
            }
        });
    }
    local.run_until(telling::terminated()).await?;
    let client = Rc::clone(&client.borrow());
    for lease in task.leases() {
        client.execute(FREE, &[&lease, &task.name]).await?;
    }
    Ok(())
}

/// One attempt, and the term if it succeeds.
async fn contend(task: &Task, lease: &str, client: &std::cell::RefCell<Rc<Client>>) {
    if !take(task, lease, client).await {
        return tokio::time::sleep(task.retry()).await;
    }
    let held = Cell::new(true);
    let renew = async {
        while held.get() {
            tokio::time::sleep(task.renewal()).await;
            held.set(take(task, lease, client).await);
        }
    };
    tokio::join!(renew, task.lead(lease, || held.get()));
}

/// Whether the lease is held now. An error is tried again on a new connection until the answer is known.
async fn take(task: &Task, lease: &str, client: &std::cell::RefCell<Rc<Client>>) -> bool {
    let ttl = task.ttl.as_millis() as f64;
    loop {
        let connected = Rc::clone(&client.borrow());
        match connected.execute(TAKE, &[&lease, &task.name, &ttl]).await {
            Ok(rows) => return rows == 1,
            Err(_) => tokio::time::sleep(task.retry()).await,
        }
        if client.borrow().is_closed()
            && let Ok(another) = connect(&task.url).await
        {
            client.replace(Rc::new(another));
        }
    }
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
