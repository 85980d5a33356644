//! A store through which nothing is changed.

use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Obstacles, Store, StoreError, Wake,
};

/// Passes on what only reads.
pub(crate) struct Looking(pub(crate) Arc<dyn Store>);

impl Store for Looking {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        if exchange.writes.is_empty() {
            return self.0.exchange(cluster, lane, exchange);
        }
        Box::pin(async {
            Err(StoreError::rejected(
                "this store was opened to look (`open_to_look`), so nothing is written to it: use \
                 `open` to join, or to ask for a change",
            ))
        })
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
