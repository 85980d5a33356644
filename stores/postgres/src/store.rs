//! The store itself: three lanes to the database, and a listener.

use std::fmt;
use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Obstacles, Store, StoreError, Wake,
};
use incumbent_store_common::{self as common, Connect, LaneOptions};
use tokio::runtime::Handle;

use crate::exchange::Job;
use crate::facts::Facts;
use crate::hints::Hints;
use crate::lane::{LaneConnect, LaneSession};
use crate::names::stored_cluster;
use crate::obstacles;
use crate::opener::Opener;
use crate::options::PostgresOptions;

/// Records in a PostgreSQL database. Clones share their connections, which close with the last.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<PostgresOptions>,
    facts: Facts,
    beat: common::Lane<LaneConnect>,
    change: common::Lane<LaneConnect>,
    watch: common::Lane<LaneConnect>,
    hints: Hints,
    opener: Opener,
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
        let opener = Opener { options: Arc::new(options), handle };
        let first = LaneConnect { lane: Lane::Beat, opener: opener.clone() }.connect().await?;
        // The server ends a statement after its time-out; a connection that says nothing even
        // then is broken.
        let span = opener.options.statement_timeout + opener.options.connect_timeout;
        let lane = |lane, options, first: Option<LaneSession>| {
            let connect = Arc::new(LaneConnect { lane, opener: opener.clone() });
            common::Lane::new(&connect, options, first).on(&opener.handle)
        };
        let inner = Inner {
            facts: first.session.facts.clone(),
            beat: lane(Lane::Beat, LaneOptions::beat(span), Some(first)),
            change: lane(Lane::Change, LaneOptions::other(span), None),
            watch: lane(Lane::Watch, LaneOptions::other(span), None),
            hints: Hints::new(&opener),
            options: Arc::clone(&opener.options),
            opener,
        };
        Ok(Self { inner: Arc::new(inner) })
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
        let Inner { beat, change, watch, options, .. } = &*self.inner;
        let sender = match lane {
            Lane::Beat => beat,
            Lane::Change => change,
            Lane::Watch => watch,
        };
        Box::pin(async move {
            let channel = options.names.channel(cluster);
            let job = Job { cluster: stored_cluster(cluster)?, channel, exchange };
            job.check()?;
            let sent = job.sent();
            sender.exchange(job, sent).await
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        if self.inner.facts.pooled {
            return None;
        }
        Some(self.inner.hints.subscribe(self.inner.options.names.channel(cluster), wake))
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.facts.warnings()
    }

    fn obstacles(&self) -> Obstacles<'_> {
        // On the runtime of the store, whoever asks.
        let opener = self.inner.opener.clone();
        let finding = self.inner.opener.handle.spawn(async move { obstacles::find(&opener).await });
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
