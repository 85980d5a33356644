//! The store itself: three lanes to the server, and a listener.

use std::fmt;
use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Store, StoreError, Wake,
};
use incumbent_store_common::{Hints, Lanes, Sent, lane_name};

use crate::hints::RedisListen;
use crate::keys::Keys;
use crate::options::RedisOptions;
use crate::server::{self, Settings};
use crate::session::{Job, RedisConnect};

/// Records in Redis or Valkey. Clones share their connections, which close with the last.
///
/// Connections are opened by the first exchange that needs them, on the tokio runtime on which
/// that exchange is awaited.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<RedisOptions>,
    settings: Settings,
    lanes: Lanes<RedisConnect>,
    hints: Option<Hints<RedisListen>>,
}

impl RedisStore {
    /// Connects to the server that a URL names; see [`RedisOptions::parse`].
    ///
    /// # Errors
    ///
    /// As [`RedisStore::connect_with`], and rejected if the URL isn't understood.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(RedisOptions::parse(url)?).await
    }

    /// Connects to a server and looks whether it can be used. Needs a tokio runtime with I/O and
    /// time.
    ///
    /// # Errors
    ///
    /// Unavailable if it can't be reached or isn't a primary now, rejected if it can't be used as
    /// it is: a wrong password, missing rights, a cluster, a server that may evict records. The
    /// message names the server and the next step, and never the password.
    pub async fn connect_with(options: RedisOptions) -> Result<Self, StoreError> {
        let options = Arc::new(options.checked()?);
        let settings = server::check(&options).await?;
        let lane = |lane| {
            let (name, options) = (lane_name(lane), Arc::clone(&options));
            Arc::new(RedisConnect { name, options })
        };
        let lanes = Lanes::new(lane, options.timeout, None, None);
        let hints = options.hints.then(|| Hints::new(RedisListen(Arc::clone(&options)), None));
        Ok(Self { inner: Arc::new(Inner { options, settings, lanes, hints }) })
    }

    /// The options that it was opened with.
    #[must_use]
    pub fn options(&self) -> &RedisOptions {
        &self.inner.options
    }

    fn keys(&self, cluster: &str) -> Keys {
        Keys::new(&self.inner.options.prefix, self.inner.options.database, cluster)
    }
}

impl Store for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "redis",
            push: self.inner.hints.is_some(),
            clock: true,
            // The server does nothing else meanwhile, so this is a matter of manners: a few
            // milliseconds.
            max_operations: 1_000,
            max_value: 16 * 1024 * 1024,
            durable: self.inner.settings.is_durable(),
            shared: true,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(async move {
            let sent = Sent::of(&exchange);
            let job = Job { keys: self.keys(cluster), exchange };
            job.check()?;
            self.inner.lanes.exchange(lane, job, sent).await
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.inner.hints.as_ref()?.subscribe(self.keys(cluster).channel, wake)
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.settings.warnings()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
