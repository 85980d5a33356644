//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod server;

use incumbent_core::store::{Expect, Write};
use incumbent_mysql::MysqlStore;
use incumbent_proving::Proxy;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};

pub use incumbent_proving::store::numbered::{
    self, applied, batch, change, create, stamp, version,
};
pub use incumbent_proving::store::{
    assert_says, block_on, find, find_in, pause, read, recovered, send, write,
};
pub use server::{Server, shared};

/// A prefix that no other test uses.
pub fn fresh() -> String {
    format!("{}_", incumbent_proving::store::fresh("t"))
}

/// The prefix in a URL.
pub fn prefix(url: &str) -> &str {
    let rest = url.split("prefix=").nth(1).expect("a prefix");
    rest.split('&').next().expect("a prefix")
}

/// The URL of a prefix behind a path.
pub fn through(proxy: &Proxy, prefix: &str) -> String {
    format!("mysql://root@127.0.0.1:{}/app?prefix={prefix}", proxy.port())
}

pub async fn connect(url: &str) -> MysqlStore {
    MysqlStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}

/// A connection as the application would have one.
pub async fn application(url: &str) -> Conn {
    Conn::new(opts(url)).await.expect("a connection")
}

/// The driver's options for the database in a URL. Left alone it would go on over a socket.
pub fn opts(url: &str) -> OptsBuilder {
    let base = url.split('?').next().expect("a URL").replace("mariadb://", "mysql://");
    OptsBuilder::from_opts(Opts::from_url(&base).expect("a URL")).prefer_socket(false)
}

/// Runs statements that bring no rows.
pub async fn run(conn: &mut Conn, sql: &str) {
    conn.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub fn put(key: &str, expect: Expect, attempt: u64) -> Write {
    numbered::put(key, expect, attempt, true)
}

pub fn with_value(key: &str, expect: Expect, attempt: u64, value: &str) -> Write {
    numbered::with_value(key, expect, attempt, true, value)
}
