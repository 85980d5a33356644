//! The stores that are built in, each behind a feature of its own.

use incumbent_core::store::Access;
#[cfg(feature = "sqlite")]
use incumbent_core::store::StoreError;
use incumbent_store_common::shown;

use crate::error::OpenError;
use crate::open::OpenStore;

/// A kind of store that a URL can name.
pub(crate) struct StoreKind {
    /// What stands before the colon.
    pub(crate) schemes: &'static [&'static str],
    /// The feature that builds it in.
    pub(crate) feature: &'static str,
    pub(crate) built: bool,
}

/// Every kind there is, built in or not.
pub(crate) const KINDS: &[StoreKind] = &[
    StoreKind { schemes: &["sqlite"], feature: "sqlite", built: cfg!(feature = "sqlite") },
    StoreKind {
        schemes: &["postgres", "postgresql"],
        feature: "postgres",
        built: cfg!(feature = "postgres"),
    },
    StoreKind { schemes: &["redis", "rediss"], feature: "redis", built: cfg!(feature = "redis") },
    StoreKind { schemes: &["mysql", "mariadb"], feature: "mysql", built: cfg!(feature = "mysql") },
    StoreKind { schemes: &["nats", "tls"], feature: "nats", built: cfg!(feature = "nats") },
    StoreKind { schemes: &["etcd", "etcds"], feature: "etcd", built: cfg!(feature = "etcd") },
    StoreKind {
        schemes: &["s3", "gs", "az", "azure"],
        feature: "object-storage",
        built: cfg!(feature = "object-storage"),
    },
];

/// Connects to a store that is built in; nothing if this scheme isn't. To be awaited on
/// incumbent's thread, where its connections stay.
///
/// A URL is read before anything is opened, so that one that isn't understood is told apart from a
/// store that refuses.
#[allow(
    clippy::unused_async,
    unused_macros,
    unused_variables,
    reason = "without features nothing is awaited"
)]
pub(crate) async fn connect(
    scheme: &str,
    url: &str,
    access: Access,
) -> Option<Result<OpenStore, OpenError>> {
    let bad = |source| OpenError::Url { url: shown(url), source };
    let failed = |source| OpenError::Store { url: shown(url), source };
    macro_rules! opened {
        ($options:ty, $open:expr) => {
            Some(match <$options>::parse(url) {
                Err(source) => Err(bad(source)),
                Ok(options) => {
                    $open(options.access(access)).await.map(OpenStore::from).map_err(failed)
                }
            })
        };
    }
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => opened!(incumbent_sqlite::SqliteOptions, sqlite),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => opened!(
            incumbent_postgres::PostgresOptions,
            incumbent_postgres::PostgresStore::connect_with
        ),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => {
            opened!(incumbent_redis::RedisOptions, incumbent_redis::RedisStore::connect_with)
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            opened!(incumbent_mysql::MysqlOptions, incumbent_mysql::MysqlStore::open)
        }
        #[cfg(feature = "nats")]
        "nats" | "tls" => {
            opened!(incumbent_nats::NatsOptions, incumbent_nats::NatsStore::connect_with)
        }
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => {
            opened!(incumbent_etcd::EtcdOptions, incumbent_etcd::EtcdStore::connect_with)
        }
        #[cfg(feature = "object-storage")]
        "s3" | "gs" | "az" | "azure" => {
            opened!(incumbent_object::BucketOptions, incumbent_object::BucketStore::connect_with)
        }
        _ => None,
    }
}

/// A file blocks, so it is opened beside the thread.
#[cfg(feature = "sqlite")]
async fn sqlite(options: incumbent_sqlite::SqliteOptions) -> Result<OpenStore, StoreError> {
    let opening = tokio::task::spawn_blocking(move || incumbent_sqlite::SqliteStore::open(options));
    match opening.await {
        Ok(opened) => opened.map(OpenStore::from),
        Err(error) => Err(StoreError::rejected(format!("opening it panicked: {error}"))),
    }
}
