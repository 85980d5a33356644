use std::collections::BTreeMap;
use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Reply, Store, StoreError, Wake,
};

use super::control::Control;
use super::{Fault, Faults};

/// Wraps any store and makes the path to it fail: before a write was applied and after, late,
/// twice, out of order, or altogether. It never lies: an error that says unavailable is one.
///
/// A clone is the same handle; [`FaultyStore::beside`] makes another one under the same faults.
///
/// ```
/// # use std::sync::Arc;
/// # use incumbent_core::store::{ErrorKind, Exchange, Lane, Store};
/// # use incumbent_testkit::{Fault, Faults, FaultyStore, ModelStore};
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let store = FaultyStore::new(Arc::new(ModelStore::sound()), Faults::none(7));
/// store.fail_next(Fault::Unacknowledged);
/// let error = store.exchange("orders", Lane::Change, Exchange::default()).await.unwrap_err();
/// assert_eq!(error.kind, ErrorKind::Unknown);
/// assert_eq!(store.count(Fault::Unacknowledged), 1);
/// # });
/// ```
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    control: Arc<Control>,
}

impl FaultyStore {
    /// This store behind these faults.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, faults: Faults) -> Self {
        Self { inner, control: Arc::new(Control::new(faults)) }
    }

    /// Another handle behind the same faults: one script, one partition, one set of counts.
    #[must_use]
    pub fn beside(&self, inner: Arc<dyn Store>) -> Self {
        Self { inner, control: Arc::clone(&self.control) }
    }

    /// Lets the next exchange fail in this way. Several calls queue up.
    pub fn fail_next(&self, fault: Fault) {
        self.control.script(None, fault);
    }

    /// Lets the next exchange of this lane fail in this way.
    pub fn fail_next_on(&self, lane: Lane, fault: Fault) {
        self.control.script(Some(lane), fault);
    }

    /// Cuts the store off, or joins it again. While it is cut off no exchange is sent, no reply
    /// to one that is under way comes back, and no hint arrives.
    pub fn cut(&self, on: bool) {
        self.control.cut(on);
    }

    /// How often this fault has struck.
    #[must_use]
    pub fn count(&self, fault: Fault) -> u64 {
        self.counts().get(&fault).copied().unwrap_or(0)
    }

    /// How often each fault has struck.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Fault, u64> {
        self.control.counts()
    }

    /// Waits until every [`Fault::Late`] exchange has landed.
    pub async fn quiet(&self) {
        self.control.quiet().await;
    }

    async fn deliver(
        &self,
        cluster: &str,
        lane: Lane,
        exchange: Exchange,
    ) -> Result<Reply, StoreError> {
        let fate = self.control.fate(lane);
        if let Some(timing) = fate.timing {
            self.control.count(timing);
            match timing {
                Fault::Reordered => self.control.overtaken().await,
                _ => tokio::time::sleep(self.control.delay()).await,
            }
        }
        if self.control.is_cut() {
            self.control.count(Fault::Cut);
            return Err(if self.control.coin() {
                StoreError::unavailable("cut off: not sent")
            } else {
                StoreError::unknown("cut off: no reply")
            });
        }
        if let Some(delivery) = fate.delivery {
            self.control.count(delivery);
        }
        let reply = self.send(fate.delivery, cluster, lane, exchange).await;
        self.control.overtake();
        if self.control.is_cut() {
            self.control.count(Fault::Cut);
            return Err(StoreError::unknown("cut off: the reply was lost"));
        }
        reply
    }

    async fn send(
        &self,
        delivery: Option<Fault>,
        cluster: &str,
        lane: Lane,
        exchange: Exchange,
    ) -> Result<Reply, StoreError> {
        match delivery {
            Some(Fault::Unavailable) => Err(StoreError::unavailable("injected: not sent")),
            Some(Fault::Unsent) => Err(StoreError::unknown("injected: perhaps not sent")),
            Some(Fault::Unacknowledged) => {
                self.inner.exchange(cluster, lane, exchange).await?;
                Err(StoreError::unknown("injected: the reply was lost"))
            }
            Some(Fault::Silent) => {
                self.inner.exchange(cluster, lane, exchange).await?;
                tokio::time::sleep(self.control.longest_delay()).await;
                Err(StoreError::unknown("injected: no reply in time"))
            }
            Some(Fault::Late) => {
                self.send_later(cluster.to_owned(), lane, exchange);
                Err(StoreError::unknown("injected: may be applied later"))
            }
            Some(Fault::Repeated) => {
                let reply = self.inner.exchange(cluster, lane, exchange.clone()).await;
                let _ = self.inner.exchange(cluster, lane, exchange).await;
                reply
            }
            _ => self.inner.exchange(cluster, lane, exchange).await,
        }
    }

    fn send_later(&self, cluster: String, lane: Lane, exchange: Exchange) {
        let (inner, delay) = (Arc::clone(&self.inner), self.control.delay());
        self.control.later(async move {
            tokio::time::sleep(delay).await;
            let _ = inner.exchange(&cluster, lane, exchange).await;
        });
    }
}

impl Store for FaultyStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(self.deliver(cluster, lane, exchange))
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        let control = Arc::clone(&self.control);
        self.inner.hints(
            cluster,
            Arc::new(move || {
                let fate =
                    if control.is_cut() { Some(Fault::HintLost) } else { control.hint_fate() };
                if let Some(fault) = fate {
                    control.count(fault);
                }
                if fate != Some(Fault::HintLost) {
                    wake();
                }
                if fate == Some(Fault::HintRepeated) {
                    wake();
                }
            }),
        )
    }
}
