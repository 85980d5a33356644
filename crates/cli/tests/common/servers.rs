//! Servers that `cargo xtask test` starts.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, reason = "this is test code, although no test")]

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Runtime;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Tables in PostgreSQL that no other test uses. Dropping it removes them.
pub struct Postgres {
    /// The URL of the store.
    pub url: String,
    /// The schema of its tables.
    pub schema: String,
    server: String,
    runtime: Runtime,
}

impl Postgres {
    /// A schema that no other test uses, on the server that the environment names or a shared one.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let server = incumbent_proving::server::postgres::shared();
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let schema = format!("cli_{}_{number}", std::process::id());
        let mark = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{mark}schema={schema}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { url, schema, server, runtime: runtime.expect("a runtime") }
    }

    /// Runs some SQL, and gives the first column of all rows.
    pub fn sql(&self, text: &str) -> Vec<String> {
        let asked = self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await?;
            let connection = tokio::runtime::Handle::current().spawn(connection);
            let rows = client.simple_query(text).await;
            drop(client);
            let _ = connection.await;
            rows
        });
        let rows = asked.expect("the server does it");
        let row = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        rows.into_iter().filter_map(row).collect()
    }

    /// The keys of all records.
    pub fn keys(&self) -> Vec<String> {
        self.sql(&format!("SELECT key FROM {}.incumbent_records ORDER BY key", self.schema))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.sql(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema));
    }
}
