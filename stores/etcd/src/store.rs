//! The store itself: three lanes to etcd, and watches.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, HintGuard, Key, Lane, Read, Store, StoreError, Wake,
};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::auth::Tokens;
use crate::exchange::{self, MAX_OPERATIONS, MAX_VALUE};
use crate::hints::Hints;
use crate::keys::Space;
use crate::lane::{self, Common};
use crate::options::EtcdOptions;

/// Records in etcd. Clones share their connections, which close with the last.
#[derive(Clone)]
pub struct EtcdStore {
    inner: Arc<Inner>,
}

struct Inner {
    common: Arc<Common>,
    beat: Arc<lane::Lane>,
    change: Arc<lane::Lane>,
    watch: Arc<lane::Lane>,
    hints: Hints,
}

impl EtcdStore {
    /// Connects to the etcd that a URL names; see [`EtcdOptions::parse`]. Nothing has to be made
    /// there first.
    ///
    /// To be called on the tokio runtime on which the store shall live, with its timers and I/O
    /// enabled: all its connections run there, whoever uses the store.
    ///
    /// # Errors
    ///
    /// Rejected if something has to be set right first: the URL, a certificate, the password, the
    /// role's rights; the message says what. Unavailable if no endpoint answers now.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(EtcdOptions::parse(url)?).await
    }

    /// The same with options made otherwise.
    ///
    /// # Errors
    ///
    /// As [`EtcdStore::connect`].
    pub async fn connect_with(options: EtcdOptions) -> Result<Self, StoreError> {
        let options = options.checked()?;
        let handle = Handle::try_current().map_err(|error| {
            StoreError::rejected(format!("the etcd store needs a tokio runtime: {error}"))
        })?;
        let place = options.place();
        let tokens = Tokens::new(options.user.clone(), place.clone());
        // Each process begins elsewhere, so that not all of them load the first endpoint.
        let first = RandomState::new().build_hasher().finish() % options.endpoints.len() as u64;
        let first = usize::try_from(first).unwrap_or(0);
        let common = Arc::new(Common { options, place, handle, tokens });
        let lane = || lane::Lane::new(&common, first);
        let inner = Inner {
            beat: Arc::new(lane()),
            change: Arc::new(lane()),
            watch: Arc::new(lane()),
            hints: Hints::new(&common, lane()),
            common,
        };
        let store = Self { inner: Arc::new(inner) };
        store.look().await?;
        Ok(store)
    }

    /// What the store was opened with.
    #[must_use]
    pub fn options(&self) -> &EtcdOptions {
        &self.inner.common.options
    }

    /// Asks for something, so that what is set up wrongly is found at once. The beat's connection
    /// is open afterwards.
    async fn look(&self) -> Result<(), StoreError> {
        let read = Read::Key { key: Key::new("board"), unless: None };
        let exchange = Exchange { writes: Vec::new(), reads: vec![read] };
        self.exchange("default", Lane::Beat, exchange).await.map(drop)
    }
}

impl Store for EtcdStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "etcd",
            push: true,
            clock: false,
            max_operations: MAX_OPERATIONS,
            max_value: MAX_VALUE,
            durable: true,
            shared: true,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(async move {
            let Inner { common, beat, change, watch, .. } = &*self.inner;
            let lane = Arc::clone(match lane {
                Lane::Beat => beat,
                Lane::Change => change,
                Lane::Watch => watch,
            });
            let space = Space::new(&common.options.prefix, cluster);
            // On the store's own runtime, whatever polls this; dropped, it sends nothing more.
            let task =
                common.handle.spawn(async move { exchange::run(&lane, &space, exchange).await });
            AbortOnDropHandle::new(task).await.unwrap_or_else(|error| {
                Err(StoreError::unknown(format!("the etcd store's runtime failed: {error}")))
            })
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        Some(self.inner.hints.subscribe(cluster, wake))
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore")
            .field("options", &self.inner.common.options)
            .finish_non_exhaustive()
    }
}
