//! Fenced transactions race against take-overs, at every isolation level.

#![allow(clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{Server, application, connect, prefix, write};
use incumbent_core::store::{Outcome, Write};
use incumbent_mysql::MysqlStore;
use incumbent_proving::race::Leader;
use incumbent_proving::race::sql::{
    Fence, Hands, Site, Zombie, only_the_assertion_fences, runtime, zombies_keep_nobody_out,
};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::runtime::Runtime;

/// Faster, and a crash isn't part of this.
const QUICK: &str = "--innodb-flush-log-at-trx-commit=0";

struct Mariadb {
    url: String,
    fence_sql: String,
}

impl Site for Mariadb {
    const NAME: &'static str = "mariadb";

    type Hands = Successor;

    fn hands(&self) -> Successor {
        let runtime = runtime();
        let (store, mut client) =
            runtime.block_on(async { (connect(&self.url).await, application(&self.url).await) });
        let prefix = prefix(&self.url).to_owned();
        let reset = format!(
            "DROP TABLE IF EXISTS {prefix}work; DELETE FROM {prefix}records; \
             CREATE TABLE {prefix}work (term BIGINT) ENGINE = InnoDB"
        );
        runtime.block_on(client.query_drop(reset)).expect("tables");
        Successor { runtime, store, client, prefix }
    }

    fn leader(&self, fence: Fence, level: &'static str) -> Leader {
        let runtime = runtime();
        let mut client = runtime.block_on(application(&self.url));
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        runtime.block_on(client.query_drop(set)).expect("a level");
        let (fence_sql, prefix) = (self.fence_sql.clone(), prefix(&self.url).to_owned());
        Box::new(move |term| {
            let transaction = transaction(&mut client, fence, &prefix, &fence_sql, term);
            let done = runtime.block_on(transaction);
            if let Err(error) = &done {
                check(fence, error);
                runtime.block_on(client.query_drop("ROLLBACK")).expect("a rollback");
            }
            done.is_ok_and(|committed| committed)
        })
    }
}

/// What is refused in a fenced transaction is a term that is over: there is no deadlock, and nothing else.
fn check(fence: Fence, error: &Error) {
    let refused = matches!(error, Error::Server(said) if said.state == "IN001");
    assert!(refused || !matches!(fence, Fence::Assert), "{error:?}");
}

async fn transaction(
    client: &mut Conn,
    fence: Fence,
    prefix: &str,
    fence_sql: &str,
    term: u64,
) -> Result<bool, Error> {
    client.query_drop("BEGIN").await?;
    let parameters = ("c", "lease/scheduler", term);
    match fence {
        Fence::Assert => {
            let call = format!("CALL {prefix}assert('c', 'scheduler', ?)");
            client.exec_drop(call, (term,)).await?;
        }
        Fence::Plain => {
            let plain = fence_sql.replace("LOCK IN SHARE MODE", "");
            let row: Option<u64> = client.exec_first(&plain, parameters).await?;
            if row.is_none() {
                client.query_drop("ROLLBACK").await?;
                return Ok(false);
            }
        }
        Fence::Ignored => client.exec_drop(fence_sql, parameters).await?,
    }
    client.exec_drop(format!("INSERT INTO {prefix}work (term) VALUES (?)"), (term,)).await?;
    tokio::time::sleep(Duration::from_micros(1500)).await;
    client.query_drop("COMMIT").await?;
    Ok(true)
}

struct Successor {
    runtime: Runtime,
    store: MysqlStore,
    client: Conn,
    prefix: String,
}

impl Hands for Successor {
    fn write(&mut self, put: Write) -> Outcome {
        self.runtime.block_on(write(&self.store, put)).expect("an answer")
    }

    fn replace(&mut self, key: &str, value: &str) {
        let sql =
            format!("UPDATE {}records SET value = ?, stamp = 'x' WHERE `key` = ?", self.prefix);
        self.runtime.block_on(self.client.exec_drop(sql, (value, key))).expect("a value");
    }

    fn committed(&mut self) -> BTreeMap<u64, u64> {
        let sql = format!("SELECT term, count(*) FROM {}work GROUP BY term", self.prefix);
        let rows: Vec<(u64, u64)> = self.runtime.block_on(self.client.query(sql)).expect("rows");
        rows.into_iter().collect()
    }
}

#[test]
fn no_stale_commit_at_any_isolation_level_and_weaker_fences_let_some_through() {
    // A server of another make can be named: `INCUMBENT_TEST_RACE_MYSQL=mysql://root@127.0.0.1/app`.
    let named = std::env::var("INCUMBENT_TEST_RACE_MYSQL").ok();
    let own = named.is_none().then(|| Server::start(&[QUICK]));
    let url = match (&own, named) {
        (Some(server), _) => server.fresh_url(),
        (None, url) => format!("{}?prefix={}", url.unwrap_or_default(), common::fresh()),
    };
    let fence_sql = runtime().block_on(async { connect(&url).await.fence_sql() });
    only_the_assertion_fences(&Mariadb { url, fence_sql });
}

struct Undead {
    client: Conn,
    prefix: String,
}

impl Zombie for Undead {
    async fn turn(&mut self, term: i64, span: Duration) -> bool {
        self.client.query_drop("BEGIN").await.expect("a transaction");
        let call = format!("CALL {}assert('c', 'scheduler', {term})", self.prefix);
        let held = self.client.query_drop(call).await.is_ok();
        if held {
            tokio::time::sleep(span).await;
        }
        self.client.query_drop("ROLLBACK").await.expect("an end");
        held
    }
}

#[test]
fn a_zombie_that_asserts_without_pause_on_32_connections_keeps_nobody_out() {
    let server = Server::start(&[QUICK]);
    let url = server.fresh_url();
    let through = |port: u16| url.replace(&server.port().to_string(), &port.to_string());
    common::block_on(zombies_keep_nobody_out(
        server.port(),
        async |port| connect(&through(port)).await.into(),
        async || Undead { client: application(&url).await, prefix: prefix(&url).to_owned() },
    ));
}
