//! The store itself: three lanes to the server.

use std::fmt;
use std::sync::Arc;

use incumbent_core::store::{
    Answer, AssertionSql, Capabilities, Exchange, HintGuard, Lane, Obstacles, Store, StoreError,
    Wake,
};
use incumbent_store_common::{Connect as _, Lanes, Sent};
use tokio::runtime::Handle;

use crate::exchange::Job;
use crate::fence;
use crate::names::stored_cluster;
use crate::obstacles;
use crate::options::MysqlOptions;
use crate::session::MysqlConnect;

/// The largest value, however much more a server takes.
const LARGEST_VALUE: usize = 4 * 1024 * 1024;

/// Records in a MySQL or MariaDB database. Clones share their connections, which close with the
/// last.
#[derive(Clone)]
pub struct MysqlStore {
    inner: Arc<Inner>,
}

struct Inner {
    connect: Arc<MysqlConnect>,
    capabilities: Capabilities,
    lanes: Lanes<MysqlConnect>,
}

impl MysqlStore {
    /// Connects to the database that a URL names; see [`MysqlOptions::parse`]. Makes the tables
    /// where they are missing.
    ///
    /// # Errors
    ///
    /// Rejected if the URL, the user, the database or its tables can't be used as they are;
    /// unavailable if the server can't be reached or takes no writes. The message names the next
    /// step and never a password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::open(MysqlOptions::parse(url)?).await
    }

    /// Connects as these options say.
    ///
    /// # Errors
    ///
    /// As [`MysqlStore::connect`].
    pub async fn open(options: MysqlOptions) -> Result<Self, StoreError> {
        Handle::try_current().map_err(|_| {
            StoreError::rejected("the MySQL store needs a tokio runtime to connect on")
        })?;
        let timeout = options.timeout;
        let connect = Arc::new(MysqlConnect::new(options));
        let first = connect.connect().await?;
        let room = (first.settings.packet / 2).saturating_sub(64 * 1024);
        let capabilities = Capabilities {
            kind: "mysql",
            push: false,
            clock: true,
            max_operations: 10_000,
            max_value: room.min(LARGEST_VALUE),
            durable: first.settings.durable,
            shared: true,
        };
        let lanes = Lanes::new(|_| Arc::clone(&connect), timeout, Some(first), None);
        Ok(Self { inner: Arc::new(Inner { connect, capabilities, lanes }) })
    }

    /// The options that it was opened with.
    #[must_use]
    pub fn options(&self) -> &MysqlOptions {
        &self.inner.connect.options
    }

    /// The SQL that makes the tables and views, for those who let no application do that.
    #[must_use]
    pub fn schema_sql(options: &MysqlOptions) -> String {
        options.schema_sql()
    }

    /// The SQL that asserts a term inside an application's own transaction.
    ///
    /// Its three parameters are the cluster, the lease's key (`lease/scheduler`) and the term. Run
    /// it in the transaction that writes, before the commit: one row means that the lease is held
    /// in this very term and can't change hands until the transaction has ended; no row means
    /// that leadership is over, and the transaction must be rolled back.
    ///
    /// A plain SELECT without the lock protects nothing.
    #[must_use]
    pub fn fence_sql(&self) -> String {
        self.inner.connect.options.fence_sql()
    }
}

impl Store for MysqlStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities.clone()
    }

    fn assertion(&self) -> Option<AssertionSql> {
        Some(fence::assertion(&self.inner.connect.options))
    }

    fn warnings(&self) -> Vec<String> {
        if self.inner.capabilities.durable {
            return Vec::new();
        }
        vec![
            "The server doesn't write each commit through to its disk: if its machine crashes, \
             the last acknowledged writes may be gone, terms included. Set \
             innodb_flush_log_at_trx_commit = 1, and with a binary log sync_binlog = 1."
                .to_owned(),
        ]
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        let Inner { capabilities, lanes, .. } = &*self.inner;
        Box::pin(async move {
            let sent = Sent::of(&exchange);
            let job = Job { cluster: stored_cluster(cluster), exchange, lane };
            job.check(capabilities.max_value)?;
            lanes.exchange(lane, job, sent).await
        })
    }

    fn obstacles(&self) -> Obstacles<'_> {
        Box::pin(obstacles::find(&self.inner.connect))
    }

    /// MySQL can't push: readers are timed by what is due.
    fn hints(&self, _cluster: &str, _wake: Wake) -> Option<HintGuard> {
        None
    }
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlStore")
            .field("options", &self.inner.connect.options)
            .finish_non_exhaustive()
    }
}
