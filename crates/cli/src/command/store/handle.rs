//! An opened store, as the conformance kit wants it.

use std::sync::Arc;

use incumbent::OpenStore;
use incumbent::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Obstacles, Store, StoreError, Wake,
};
use incumbent_testkit::{Opener, Opening};

/// Opens the store of a URL as often as the kit asks.
pub(super) struct UrlOpener {
    /// The URL.
    pub(super) url: String,
}

impl Opener for UrlOpener {
    fn open(&self) -> Opening<'_> {
        Box::pin(async move {
            let store = incumbent::open(&self.url).await.map_err(StoreError::rejected)?;
            Ok(Arc::new(Handle(store)) as Arc<dyn Store>)
        })
    }
}

/// Passes everything on.
struct Handle(OpenStore);

impl Store for Handle {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        self.0.exchange(cluster, lane, exchange)
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.0.hints(cluster, wake)
    }

    fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }

    fn obstacles(&self) -> Obstacles<'_> {
        self.0.obstacles()
    }
}
