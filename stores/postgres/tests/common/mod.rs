//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod bouncer;
pub mod server;

use incumbent_postgres::PostgresStore;
use incumbent_proving::Proxy;
use tokio_postgres::{Client, NoTls};

pub use incumbent_proving::store::numbered::{
    applied, batch, beat, change, create, put, stamp, version, with_value,
};
pub use incumbent_proving::store::{
    Hints, assert_says, block_on, eventually, find, find_in, pause, read, send, write,
};
pub use server::{Server, shared};

/// A schema that no other test uses.
pub fn fresh() -> String {
    incumbent_proving::store::fresh("test_")
}

/// The URL of a schema behind a path.
pub fn through(proxy: &Proxy, schema: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{}/postgres?schema={schema}", proxy.port())
}

pub async fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}

/// A connection as the application would have one.
pub async fn application(url: &str) -> Client {
    client(url.split('?').next().expect("a URL")).await
}

/// A connection over the socket, where no password is asked for.
pub async fn over_socket(server: &Server) -> Client {
    let directory = server.data().parent().expect("a parent").display().to_string();
    let port = server.port();
    client(&format!("host={directory} port={port} user=postgres dbname=postgres")).await
}

async fn client(place: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(place, NoTls).await.expect("a connection");
    tokio::runtime::Handle::current().spawn(async move {
        let _ = connection.await;
    });
    client
}
