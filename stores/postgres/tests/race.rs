//! Fenced transactions race against take-overs, at every isolation level.

#![allow(clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{Server, application, connect, write};
use incumbent_core::store::{Outcome, Write};
use incumbent_postgres::PostgresStore;
use incumbent_proving::race::Leader;
use incumbent_proving::race::sql::{
    Fence, Hands, Site, Zombie, only_the_assertion_fences, runtime, zombies_keep_nobody_out,
};
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

const ASSERT: &str = "SELECT incumbent_assert('c', 'scheduler', $1)";

struct Postgres {
    url: String,
    fence_sql: String,
}

/// A connection that finds the store's tables.
async fn client(url: &str) -> Client {
    let client = application(url).await;
    let schema = url.split("schema=").nth(1).expect("a schema");
    client.batch_execute(&format!("SET search_path = {schema}")).await.expect("a path");
    client
}

impl Site for Postgres {
    const NAME: &'static str = "postgres";

    type Hands = Successor;

    fn hands(&self) -> Successor {
        let runtime = runtime();
        let (store, client) =
            runtime.block_on(async { (connect(&self.url).await, client(&self.url).await) });
        let reset = "DROP TABLE IF EXISTS work; DELETE FROM incumbent_records; \
                     CREATE TABLE work (term bigint)";
        runtime.block_on(client.batch_execute(reset)).expect("tables");
        Successor { runtime, store, client }
    }

    fn leader(&self, fence: Fence, level: &'static str) -> Leader {
        let runtime = runtime();
        let client = runtime.block_on(client(&self.url));
        let fence_sql = self.fence_sql.clone();
        Box::new(move |term| {
            let done = runtime.block_on(transaction(&client, fence, level, &fence_sql, term));
            if let Err(error) = &done {
                check(fence, error);
                runtime.block_on(client.batch_execute("ROLLBACK")).expect("a rollback");
            }
            done.is_ok_and(|committed| committed)
        })
    }
}

/// What is refused in a fenced transaction is a term that is over, or a snapshot that is older than a
/// take-over: there is no deadlock, and nothing else.
fn check(fence: Fence, error: &Error) {
    let code = error.code().map(SqlState::code);
    let refused = matches!(code, Some("IN001" | "40001"));
    assert!(refused || !matches!(fence, Fence::Assert), "{error:?}");
}

async fn transaction(
    client: &Client,
    fence: Fence,
    level: &str,
    fence_sql: &str,
    term: u64,
) -> Result<bool, Error> {
    let term = term.cast_signed();
    client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}")).await?;
    match fence {
        Fence::Assert => {
            client.query_one(ASSERT, &[&term]).await?;
        }
        Fence::Plain => {
            let plain = fence_sql.replace("FOR SHARE", "");
            let row = client.query_opt(&plain, &[&"c", &"lease/scheduler", &term]).await?;
            if row.is_none() {
                client.batch_execute("ROLLBACK").await?;
                return Ok(false);
            }
        }
        Fence::Ignored => {
            client.query_opt(fence_sql, &[&"c", &"lease/scheduler", &term]).await?;
        }
    }
    client.execute("INSERT INTO work (term) VALUES ($1)", &[&term]).await?;
    tokio::time::sleep(Duration::from_micros(1500)).await;
    client.batch_execute("COMMIT").await?;
    Ok(true)
}

struct Successor {
    runtime: Runtime,
    store: PostgresStore,
    client: Client,
}

impl Hands for Successor {
    fn write(&mut self, put: Write) -> Outcome {
        self.runtime.block_on(write(&self.store, put)).expect("an answer")
    }

    fn replace(&mut self, key: &str, value: &str) {
        let sql = "UPDATE incumbent_records SET value = $1, stamp = 'x' WHERE key = $2";
        self.runtime.block_on(self.client.execute(sql, &[&value, &key])).expect("a value");
    }

    fn committed(&mut self) -> BTreeMap<u64, u64> {
        let sql = "SELECT term, count(*) FROM work GROUP BY term";
        let rows = self.runtime.block_on(self.client.query(sql, &[])).expect("an answer");
        let number = |row: &tokio_postgres::Row, at| row.get::<_, i64>(at).cast_unsigned();
        rows.iter().map(|row| (number(row, 0), number(row, 1))).collect()
    }
}

#[test]
fn no_stale_commit_at_any_isolation_level_and_weaker_fences_let_some_through() {
    let server = Server::start(&["fsync=off"]);
    let url = server.fresh_url();
    let fence_sql = runtime().block_on(async { connect(&url).await.fence_sql() });
    only_the_assertion_fences(&Postgres { url, fence_sql });
}

struct Undead(Client);

impl Zombie for Undead {
    async fn turn(&mut self, term: i64, span: Duration) -> bool {
        self.0.batch_execute("BEGIN").await.expect("a transaction");
        let held = self.0.query_one(ASSERT, &[&term]).await.is_ok();
        if held {
            tokio::time::sleep(span).await;
        }
        self.0.batch_execute("ROLLBACK").await.expect("an end");
        held
    }
}

#[test]
fn a_zombie_that_asserts_without_pause_on_32_connections_keeps_nobody_out() {
    let server = Server::start(&["fsync=off", "max_connections=60"]);
    let url = server.fresh_url();
    let through = |port: u16| url.replace(&server.port().to_string(), &port.to_string());
    common::block_on(zombies_keep_nobody_out(
        server.port(),
        async |port| connect(&through(port)).await.into(),
        async || Undead(client(&url).await),
    ));
}
