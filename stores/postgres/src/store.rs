//! The store itself: three lanes to the database, of which that for reads listens too.

use std::fmt;
use std::sync::Arc;

use incumbent_core::store::{
    Answer, AssertionSql, Capabilities, Exchange, HintGuard, Lane, Obstacles, Store, StoreError,
    Wake,
};
use incumbent_store_common::{Connect as _, Hints, Lanes, Sent, lane_name};
use tokio::runtime::Handle;

use crate::connect::PostgresConnect;
use crate::exchange::Job;
use crate::facts::Facts;
use crate::fence;
use crate::hints::PostgresListen;
use crate::names::stored_cluster;
use crate::obstacles;
use crate::options::PostgresOptions;

/// Records in a PostgreSQL database. Clones share their connections, which close with the last.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<PostgresOptions>,
    facts: Facts,
    lanes: Lanes<PostgresConnect>,
    hints: Hints<PostgresListen>,
    handle: Handle,
}

impl PostgresStore {
    /// Connects to the database that a URL names; see [`PostgresOptions::parse`]. Makes the tables
    /// where they are missing and it is allowed to.
    ///
    /// To be called on the tokio runtime on which the store shall live, with its timers and I/O
    /// enabled: all its connections run there, whoever uses the store.
    ///
    /// # Errors
    ///
    /// Rejected if something has to be set right first: the URL, the password, the role's rights,
    /// the tables; the message says what, with the SQL to run. Unavailable if the server can't be
    /// reached now or is a standby.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(PostgresOptions::parse(url)?).await
    }

    /// The same with options made otherwise.
    ///
    /// # Errors
    ///
    /// As [`PostgresStore::connect`].
    pub async fn connect_with(options: PostgresOptions) -> Result<Self, StoreError> {
        let handle = Handle::try_current().map_err(|error| {
            StoreError::rejected(format!("the PostgreSQL store needs a tokio runtime: {error}"))
        })?;
        let options = Arc::new(options);
        let connect = |purpose| {
            let (options, handle) = (Arc::clone(&options), handle.clone());
            PostgresConnect { options, handle, purpose }
        };
        let first = connect(lane_name(Lane::Beat)).connect().await?;
        let facts = first.facts.clone();
        // The server ends a statement after its time-out; a connection that says nothing even
        // then is broken.
        let span = options.statement_timeout + options.connect_timeout;
        let lane = |lane| Arc::new(connect(lane_name(lane)));
        let lanes = Lanes::new(lane, span, Some(first), Some(&handle));
        let hints = Hints::new(PostgresListen(Arc::clone(lanes.watch())), Some(&handle));
        Ok(Self { inner: Arc::new(Inner { options, facts, lanes, hints, handle }) })
    }

    /// The SQL that makes the tables and views, for those who let no application do that.
    #[must_use]
    pub fn schema_sql(options: &PostgresOptions) -> String {
        options.schema_sql()
    }

    /// The SQL that asserts a term inside an application's own transaction: `$1` is the cluster,
    /// `$2` the lease's key ([`incumbent_core::keys::lease`]), `$3` the term as `bigint`.
    ///
    /// Run it in the transaction that does leader-only work, and roll back if it returns no row.
    /// It locks the lease's row `FOR SHARE`, so a take-over waits until the transaction ends, and
    /// a transaction begun after a take-over gets no row: a stale leader can't commit. Nothing
    /// weaker holds: `FOR KEY SHARE`, a plain `SELECT` even when `SERIALIZABLE`, or ignoring that
    /// no row came, each lets a stale leader commit.
    ///
    /// The role needs `SELECT`, and `UPDATE` on one column at least, as every locking read does.
    #[must_use]
    pub fn fence_sql(&self) -> String {
        self.inner.options.fence_sql()
    }

    /// What the server said about itself when the store was opened.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.inner.facts
    }
}

impl Store for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "postgres",
            push: !self.inner.facts.pooled,
            clock: true,
            max_operations: 10_000,
            max_value: 16 * 1024 * 1024,
            durable: self.inner.facts.fsync,
            shared: true,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        let Inner { lanes, options, .. } = &*self.inner;
        Box::pin(async move {
            let (sent, channel) = (Sent::of(&exchange), options.names.channel(cluster));
            let job = Job { cluster: stored_cluster(cluster)?, channel, exchange, lane };
            job.check()?;
            lanes.exchange(lane, job, sent).await
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        if self.inner.facts.pooled {
            return None;
        }
        self.inner.hints.subscribe(self.inner.options.names.channel(cluster), wake)
    }

    fn assertion(&self) -> Option<AssertionSql> {
        Some(fence::assertion(&self.inner.options))
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.facts.warnings()
    }

    fn obstacles(&self) -> Obstacles<'_> {
        // On the runtime of the store, whoever asks.
        let (options, handle) = (Arc::clone(&self.inner.options), self.inner.handle.clone());
        let connect = PostgresConnect { options, handle, purpose: "obstacles" };
        let finding = self.inner.handle.spawn(async move { obstacles::find(&connect).await });
        Box::pin(async move { finding.await.unwrap_or_default() })
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("options", &self.inner.options)
            .field("facts", &self.inner.facts)
            .finish_non_exhaustive()
    }
}
