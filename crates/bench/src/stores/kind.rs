//! The stores that are measured, and where their servers are.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Result;
use incumbent::store::Store;
use incumbent_etcd::EtcdStore;
use incumbent_mysql::MysqlStore;
use incumbent_nats::NatsStore;
use incumbent_object::BucketStore;
use incumbent_postgres::PostgresStore;
use incumbent_redis::RedisStore;
use incumbent_sqlite::SqliteStore;

use super::bare::{Bucket, Connecting, Etcd, Mysql, Nats, Postgres, Redis, Sqlite};

/// A store that is being opened.
type Opening = Pin<Box<dyn Future<Output = Result<Arc<dyn Store>>> + Send>>;

pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The variable with the URL of a server, as the tests have it. SQLite needs none.
    variable: Option<&'static str>,
    /// Its own client alone.
    pub(crate) bare: for<'a> fn(&'a str) -> Connecting<'a>,
    /// The store, on the runtime of the caller.
    pub(crate) open: fn(String) -> Opening,
}

pub(crate) const ALL: &[Kind] = &[
    Kind {
        name: "sqlite",
        variable: None,
        bare: Sqlite::connect,
        open: |url| Box::pin(async move { shared(SqliteStore::open_url(&url)?) }),
    },
    Kind {
        name: "postgres",
        variable: Some("INCUMBENT_TEST_POSTGRES"),
        bare: Postgres::connect,
        open: |url| Box::pin(async move { shared(PostgresStore::connect(&url).await?) }),
    },
    Kind {
        name: "redis",
        variable: Some("INCUMBENT_TEST_REDIS"),
        bare: Redis::connect,
        open: |url| Box::pin(async move { shared(RedisStore::connect(&url).await?) }),
    },
    Kind {
        name: "mysql",
        variable: Some("INCUMBENT_TEST_MYSQL"),
        bare: Mysql::connect,
        open: |url| Box::pin(async move { shared(MysqlStore::connect(&url).await?) }),
    },
    Kind {
        name: "etcd",
        variable: Some("INCUMBENT_TEST_ETCD"),
        bare: Etcd::connect,
        open: |url| Box::pin(async move { shared(EtcdStore::connect(&url).await?) }),
    },
    Kind {
        name: "nats",
        variable: Some("INCUMBENT_TEST_NATS"),
        bare: Nats::connect,
        open: |url| Box::pin(async move { shared(NatsStore::connect(&url).await?) }),
    },
    Kind {
        name: "azure",
        variable: Some("INCUMBENT_TEST_AZURE"),
        bare: Bucket::connect,
        open: |url| Box::pin(async move { shared(BucketStore::connect(&url).await?) }),
    },
];

fn shared(store: impl Store) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(store))
}

/// The stores that are asked for.
pub(crate) struct Wanted {
    /// Those that can be reached, with their URLs.
    pub(crate) there: Vec<(&'static Kind, String)>,
    /// The variables that name no server.
    missing: Vec<&'static str>,
}

impl Wanted {
    /// All stores, or those that are named. SQLite's file is made in the directory.
    pub(crate) fn find(only: &[String], directory: &Path) -> Result<Self> {
        for name in only {
            let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
            let known = names.contains(&name.as_str());
            anyhow::ensure!(known, "there is no store {name:?}; there are: {}", names.join(", "));
        }
        let named = |kind: &&Kind| only.is_empty() || only.iter().any(|name| name == kind.name);
        let mut wanted = Self { there: Vec::new(), missing: Vec::new() };
        for kind in ALL.iter().filter(named) {
            let Some(variable) = kind.variable else {
                let file = directory.join("bench.db");
                wanted.there.push((kind, format!("sqlite:{}", file.display())));
                continue;
            };
            match std::env::var(variable) {
                Ok(url) => wanted.there.push((kind, url)),
                Err(_) => wanted.missing.push(variable),
            }
        }
        Ok(wanted)
    }

    /// Names what was left out.
    pub(crate) fn name_missing(&self) {
        for variable in &self.missing {
            eprintln!("not measured, because {variable} names no server");
        }
    }
}
