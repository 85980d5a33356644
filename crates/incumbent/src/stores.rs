//! The stores that are built in, each behind a feature of its own.

use incumbent_core::store::StoreError;

use crate::open::OpenStore;

/// A kind of store that a URL can name.
pub(crate) struct Kind {
    /// What stands before the colon.
    pub(crate) schemes: &'static [&'static str],
    /// The feature that builds it in.
    pub(crate) feature: &'static str,
    pub(crate) built: bool,
}

/// Every kind there is, built in or not.
pub(crate) const KINDS: &[Kind] = &[
    Kind { schemes: &["sqlite"], feature: "sqlite", built: cfg!(feature = "sqlite") },
    Kind {
        schemes: &["postgres", "postgresql"],
        feature: "postgres",
        built: cfg!(feature = "postgres"),
    },
    Kind { schemes: &["redis", "rediss"], feature: "redis", built: cfg!(feature = "redis") },
    Kind { schemes: &["mysql", "mariadb"], feature: "mysql", built: cfg!(feature = "mysql") },
    Kind { schemes: &["nats", "tls"], feature: "nats", built: cfg!(feature = "nats") },
    Kind { schemes: &["etcd", "etcds"], feature: "etcd", built: cfg!(feature = "etcd") },
    Kind {
        schemes: &["s3", "gs", "az", "azure"],
        feature: "object-storage",
        built: cfg!(feature = "object-storage"),
    },
];

/// Connects to a store that is built in; nothing if this scheme isn't. To be awaited on
/// incumbent's thread, where its connections stay.
#[allow(clippy::unused_async, unused_variables, reason = "without features nothing is awaited")]
pub(crate) async fn connect(scheme: &str, url: &str) -> Option<Result<OpenStore, StoreError>> {
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => Some(sqlite(url.to_owned()).await),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            Some(incumbent_postgres::PostgresStore::connect(url).await.map(OpenStore::from))
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" => {
            Some(incumbent_redis::RedisStore::connect(url).await.map(OpenStore::from))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            Some(incumbent_mysql::MysqlStore::connect(url).await.map(OpenStore::from))
        }
        #[cfg(feature = "nats")]
        "nats" | "tls" => Some(incumbent_nats::NatsStore::connect(url).await.map(OpenStore::from)),
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => {
            Some(incumbent_etcd::EtcdStore::connect(url).await.map(OpenStore::from))
        }
        #[cfg(feature = "object-storage")]
        "s3" | "gs" | "az" | "azure" => {
            Some(incumbent_object::BucketStore::connect(url).await.map(OpenStore::from))
        }
        _ => None,
    }
}

/// A file blocks, so it is opened beside the thread.
#[cfg(feature = "sqlite")]
async fn sqlite(url: String) -> Result<OpenStore, StoreError> {
    let opening =
        tokio::task::spawn_blocking(move || incumbent_sqlite::SqliteStore::open_url(&url));
    match opening.await {
        Ok(opened) => opened.map(OpenStore::from),
        Err(error) => Err(StoreError::rejected(format!("opening it panicked: {error}"))),
    }
}
