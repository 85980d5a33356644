//! The store itself: three lanes to the server, and a listener.

use std::fmt;
use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Store, StoreError, Wake,
};
use incumbent_store_common::{Hints, Lanes, Sent, lane_name};
use tokio::runtime::Handle;

use crate::connect::{NatsConnect, Shared};
use crate::exchange::Job;
use crate::facts::Facts;
use crate::keys::Subjects;
use crate::options::NatsOptions;

/// Below the 1 MB that a server takes by default, and far above the largest record.
const LARGEST: usize = 256 * 1024;

/// What headers and subject may take of a message.
const HEADERS: usize = 4 * 1024;

/// Records in a key-value bucket of NATS JetStream. Clones share their connections, which close
/// with the last.
#[derive(Clone)]
pub struct NatsStore {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<NatsOptions>,
    facts: Facts,
    lanes: Lanes<NatsConnect>,
    hints: Hints<NatsConnect>,
}

impl NatsStore {
    /// Connects to the server that a URL names; see [`NatsOptions::parse`]. Makes the bucket
    /// where it is missing and it is allowed to.
    ///
    /// To be called on the tokio runtime on which the store shall live, with its timers and I/O
    /// enabled: all its connections run there, whoever uses the store.
    ///
    /// # Errors
    ///
    /// Rejected if something has to be set right first: the URL, the login, the user's rights,
    /// JetStream, the bucket; the message says what, with the command to run. Unavailable if the
    /// server can't be reached now.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(NatsOptions::parse(url)?).await
    }

    /// The same with options made otherwise.
    ///
    /// # Errors
    ///
    /// As [`NatsStore::connect`].
    pub async fn connect_with(options: NatsOptions) -> Result<Self, StoreError> {
        let options = options.checked()?;
        let handle = Handle::try_current().map_err(|error| {
            StoreError::rejected(format!("the NATS store needs a tokio runtime: {error}"))
        })?;
        let shared = Arc::new(Shared::new(options));
        let connect = |purpose| NatsConnect { shared: Arc::clone(&shared), purpose };
        let (first, facts) = connect(lane_name(Lane::Beat)).open().await?;
        let options = Arc::clone(&shared.options);
        let lane = |lane| Arc::new(connect(lane_name(lane)));
        let lanes = Lanes::new(lane, options.timeout, Some(first), Some(&handle));
        let hints = Hints::new(connect("hints"), Some(&handle));
        Ok(Self { inner: Arc::new(Inner { options, facts, lanes, hints }) })
    }

    /// What the server said about itself when the store was opened.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.inner.facts
    }
}

impl Store for NatsStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "nats",
            push: self.inner.options.hints,
            // Messages carry the server's time, but nothing says what time it is there now.
            clock: false,
            max_operations: 10_000,
            max_value: LARGEST.min(self.inner.facts.max_payload.saturating_sub(HEADERS)),
            // A server syncs its files every two minutes unless told otherwise, and there is no
            // way to ask it (F15).
            durable: false,
            shared: true,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        let Inner { lanes, options, .. } = &*self.inner;
        let subjects = Subjects::new(&options.bucket, cluster);
        let sent = Sent::of(&exchange);
        let job = Job { subjects, exchange, hints: options.hints };
        Box::pin(async move {
            job.check()?;
            lanes.exchange(lane, job, sent).await
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        let Inner { options, hints, .. } = &*self.inner;
        let channel = Subjects::new(&options.bucket, cluster).hint;
        if options.hints { hints.subscribe(channel, wake) } else { None }
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.facts.warnings()
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore")
            .field("options", &self.inner.options)
            .field("facts", &self.inner.facts)
            .finish_non_exhaustive()
    }
}
