//! Fenced transactions race against take-overs, at every isolation level.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Server, application, connect, prefix, stamp, with_value, write};
use incumbent::{Node, clock};
use incumbent_core::store::{Expect, Outcome, Version};
use incumbent_mysql::MysqlStore;
use incumbent_proving::Proxy;
use incumbent_proving::race::{Leader, Taker, Tally, race, transactions};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::runtime::{Builder, Runtime};

const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fence {
    Assert,
    /// A plain SELECT that looks at what it finds.
    Plain,
    /// The locking SELECT, and nobody looks whether a row came.
    Ignored,
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

struct Site {
    url: String,
    prefix: String,
    fence_sql: String,
}

/// One connection that commits a row under a term, if its fence lets it.
fn leader(site: &Site, fence: Fence, level: &'static str) -> Leader {
    let runtime = runtime();
    let mut client = runtime.block_on(application(&site.url));
    let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
    runtime.block_on(client.query_drop(set)).expect("a level");
    let (fence_sql, prefix) = (site.fence_sql.clone(), site.prefix.clone());
    Box::new(move |term| {
        let done = runtime.block_on(transaction(&mut client, fence, &prefix, &fence_sql, term));
        if done.is_err() {
            runtime.block_on(client.query_drop("ROLLBACK")).expect("a rollback");
        }
        done.is_ok_and(|committed| committed)
    })
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
        Fence::Ignored => {
            client.exec_drop(fence_sql, parameters).await?;
        }
    }
    client.exec_drop(format!("INSERT INTO {prefix}work (term) VALUES (?)"), (term,)).await?;
    tokio::time::sleep(Duration::from_micros(1500)).await;
    client.query_drop("COMMIT").await?;
    Ok(true)
}

/// Each term has a member of its own. Most take-overs close the member before, as one that fell
/// silent; in between the lease goes from hand to hand.
struct Successor {
    runtime: Runtime,
    store: MysqlStore,
    client: Conn,
    prefix: String,
    version: Version,
    attempt: u64,
}

impl Successor {
    fn new(site: &Site) -> Self {
        let runtime = runtime();
        let (store, client) =
            runtime.block_on(async { (connect(&site.url).await, application(&site.url).await) });
        let mut client = client;
        let prefix = site.prefix.clone();
        let reset = format!(
            "DROP TABLE IF EXISTS {prefix}work; DELETE FROM {prefix}records; \
             CREATE TABLE {prefix}work (term BIGINT) ENGINE = InnoDB"
        );
        runtime.block_on(client.query_drop(reset)).expect("tables");
        let version = Version::new("");
        let mut this = Self { runtime, store, client, prefix, version, attempt: 0 };
        this.swap(Expect::Absent, 1);
        this
    }

    fn swap(&mut self, expect: Expect, term: u64) {
        let member = |term: u64, state: &str| {
            format!(
                "{{\"format\":1,\"id\":\"m{term}\",\"state\":\"{state}\",\"beat\":1,\"ttl_ms\":5000,\"due_ms\":1000}}"
            )
        };
        self.attempt += 1;
        let joined = with_value(
            &format!("member/m{term}"),
            Expect::Absent,
            self.attempt,
            &member(term, "alive"),
        );
        let joined = self.runtime.block_on(write(&self.store, joined)).expect("a member");
        assert!(matches!(joined, Outcome::Applied(_)));
        if term > 1 && term % 4 != 1 {
            let old = format!("member/m{}", term - 1);
            let closed = format!(
                "UPDATE {}records SET value = '{}', stamp = 'x' WHERE `key` = '{old}'",
                self.prefix,
                member(term - 1, "expired")
            );
            self.runtime.block_on(self.client.query_drop(closed)).expect("it is closed");
        }
        let value = format!(
            "{{\"format\":1,\"name\":\"scheduler\",\"term\":{term},\
             \"holder\":{{\"member\":\"m{term}\",\"node\":\"n{term}\"}}}}"
        );
        loop {
            self.attempt += 1;
            let put = with_value("lease/scheduler", expect.clone(), self.attempt, &value);
            let taken = self.runtime.block_on(write(&self.store, put)).expect("an answer");
            if taken != Outcome::Refused {
                break;
            }
        }
        self.version = stamp(self.attempt).version();
    }
}

impl Taker for Successor {
    fn take(&mut self, term: u64) {
        self.swap(Expect::Version(self.version.clone()), term);
    }

    fn committed(&mut self) -> BTreeMap<u64, u64> {
        let sql = format!("SELECT term, count(*) FROM {}work GROUP BY term", self.prefix);
        let rows: Vec<(u64, u64)> = self.runtime.block_on(self.client.query(sql)).expect("rows");
        rows.into_iter().collect()
    }
}

fn run(site: &Site, fence: Fence, level: &'static str, count: u64) -> Tally {
    let mut successor = Successor::new(site);
    let leaders = (0..6).map(|_| leader(site, fence, level)).collect();
    let tally = race(count, leaders, &mut successor);
    println!("mariadb, {level}, {fence:?}: {tally}");
    tally
}

#[test]
fn no_stale_commit_at_any_isolation_level_and_weaker_fences_let_some_through() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    let url = server.fresh_url();
    let fence_sql = runtime().block_on(async { connect(&url).await.fence_sql() });
    let site = Site { prefix: prefix(&url).to_owned(), url, fence_sql };
    let each = transactions();
    let (mut plain, mut ignored) = (0, 0);
    for level in LEVELS {
        let tally = run(&site, Fence::Assert, level, each);
        assert_eq!(tally.stale, 0, "{level}: {tally}");
        assert!(tally.committed > each / 20 && tally.refused > 0, "no race: {level}: {tally}");
        assert_eq!(tally.committed + tally.refused, each, "{level}: {tally}");
        plain += run(&site, Fence::Plain, level, each).stale;
        ignored += run(&site, Fence::Ignored, level, each).stale;
    }
    // The same race shows what the others let through, so it can show something.
    assert!(plain > 0 && ignored > 0, "{plain} with a plain SELECT, {ignored} without a look");
}

#[test]
fn a_zombie_that_asserts_without_pause_on_32_connections_keeps_nobody_out() {
    const TTL: Duration = Duration::from_secs(3);
    const TRANSACTION: Duration = Duration::from_millis(50);
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    common::block_on(async {
        let url = server.fresh_url();
        let prefix = prefix(&url).to_owned();
        let proxy = Proxy::to(server.port()).await;
        let node = |name: &str| {
            Node::builder().cluster("c").name(name.to_owned()).allow_short_ttl().ttl(TTL)
        };
        let first = node("first").join(connect(&common::through(&proxy, &prefix)).await).await;
        let first = first.expect("it joins");
        let mut campaign = first.campaign("scheduler").expect("a campaign");
        let held = campaign.elected().await.expect("it leads");
        let term = held.fence().as_i64();
        let second = node("second").join(connect(&url).await).await.expect("it joins");
        let mut campaign = second.campaign("scheduler").expect("a campaign");

        let (going, passed) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
        let mut zombies = Vec::new();
        for _ in 0..32 {
            let mut client = application(&url).await;
            let (going, passed) = (Arc::clone(&going), Arc::clone(&passed));
            let call = format!("CALL {prefix}assert('c', 'scheduler', {term})");
            zombies.push(tokio::runtime::Handle::current().spawn(async move {
                while going.load(Ordering::SeqCst) {
                    client.query_drop("BEGIN").await.expect("a transaction");
                    if client.query_drop(&call).await.is_ok() {
                        passed.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(TRANSACTION).await;
                    }
                    client.query_drop("ROLLBACK").await.expect("an end");
                }
            }));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(passed.load(Ordering::SeqCst) > 32, "they hold the lock all the time");
        let since = clock::now();
        proxy.set(incumbent_proving::Mood::Silent);
        let won = tokio::time::timeout(Duration::from_secs(30), campaign.elected()).await;
        let taken = clock::now().since(since);
        going.store(false, Ordering::SeqCst);
        println!("taken over after {taken:?} (ttl {TTL:?}, transactions of {TRANSACTION:?})");
        assert!(won.is_ok(), "the successor is kept out");
        assert!(taken < TTL + Duration::from_secs(1) + TRANSACTION, "{taken:?}");
        for zombie in zombies {
            zombie.await.expect("no panic");
        }
        drop(held);
    });
}
