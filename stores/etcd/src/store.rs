//! The store itself: three lanes to etcd, and watches.

use std::fmt;
use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Store, StoreError, Wake,
};
use incumbent_store_common::{Connect as _, Hints, Lanes, Sent, chance};
use tokio::runtime::Handle;

use crate::auth::Tokens;
use crate::exchange::{self, Job, MAX_OPERATIONS, MAX_VALUE};
use crate::hints::EtcdListen;
use crate::keys::Space;
use crate::options::EtcdOptions;
use crate::session::{EtcdConnect, Shared};

/// Records in etcd. Clones share their connections, which close with the last.
#[derive(Clone)]
pub struct EtcdStore {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    lanes: Lanes<EtcdConnect>,
    hints: Hints<EtcdListen>,
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
        let handle = Handle::try_current().map_err(|error| {
            StoreError::rejected(format!("the etcd store needs a tokio runtime: {error}"))
        })?;
        let place = options.place();
        let tokens = Tokens::new(options.user.clone(), place.clone());
        // Each process begins elsewhere, so that not all of them load the first endpoint.
        let start = chance(options.endpoints.len());
        let shared = Arc::new(Shared { options, place, tokens });
        let connect = |start| Arc::new(EtcdConnect::new(&shared, start));
        let beat = connect(start);
        let first = beat.connect().await?;
        let connect_lane = |lane| match lane {
            Lane::Beat => Arc::clone(&beat),
            Lane::Change => connect(start),
            // Beats go over this too when their own is lost, perhaps with its endpoint.
            Lane::Watch => connect(start + 1),
        };
        let timeout = shared.options.timeout;
        let lanes = Lanes::new(connect_lane, timeout, Some(first), Some(&handle));
        let hints = Hints::new(EtcdListen(connect(start)), Some(&handle));
        Ok(Self { inner: Arc::new(Inner { shared, lanes, hints }) })
    }

    /// What the store was opened with.
    #[must_use]
    pub fn options(&self) -> &EtcdOptions {
        &self.inner.shared.options
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
            let Inner { shared, lanes, .. } = &*self.inner;
            exchange::check(&exchange)?;
            let sent = Sent::of(&exchange);
            let space = Space::new(&shared.options.prefix, cluster);
            lanes.exchange(lane, Job { space, exchange }, sent).await
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.inner.hints.subscribe(cluster.to_owned(), wake)
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore")
            .field("options", &self.inner.shared.options)
            .finish_non_exhaustive()
    }
}
