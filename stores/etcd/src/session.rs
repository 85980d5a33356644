//! A connection to one member, known to lead to a cluster that can be used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use incumbent_core::store::{Exchange, Key, Read, Reply, StoreError};
use incumbent_store_common::{Connect, Endpoint, Failure, Sent, Session, first_of, within};

use crate::auth::Tokens;
use crate::error;
use crate::exchange::Job;
use crate::keys::Space;
use crate::link::Link;
use crate::options::EtcdOptions;
use crate::wire::{TXN, TxnRequest, TxnResponse};

/// What all connections of a store share.
pub(crate) struct Shared {
    pub(crate) options: EtcdOptions,
    pub(crate) place: String,
    pub(crate) tokens: Tokens,
}

/// Makes connections, each to another member than the one before.
pub(crate) struct EtcdConnect {
    pub(crate) shared: Arc<Shared>,
    next: AtomicUsize,
}

/// One connection, ready for exchanges.
pub(crate) struct EtcdSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Link,
}

impl EtcdConnect {
    /// Starts with this endpoint, or the first if there are fewer.
    pub(crate) fn new(shared: &Arc<Shared>, first: usize) -> Self {
        Self { shared: Arc::clone(shared), next: AtomicUsize::new(first) }
    }

    /// Asks for something, so that what is set up wrongly and a member that hangs or has lost its
    /// cluster are found before anybody relies on them.
    async fn open(&self, endpoint: &Endpoint) -> Result<EtcdSession, StoreError> {
        let options = &self.shared.options;
        let opening = async {
            let link = Link::open(options, endpoint).await?;
            let session = EtcdSession { shared: Arc::clone(&self.shared), link };
            session.look().await.map_err(|failure| failure.error)?;
            Ok(session)
        };
        within(&format!("etcd at {endpoint}"), "connecting", options.connect_timeout, opening).await
    }
}

impl Connect for EtcdConnect {
    type Session = EtcdSession;

    async fn connect(&self) -> Result<EtcdSession, StoreError> {
        let endpoints = &self.shared.options.endpoints;
        let start = self.next.fetch_add(1, Ordering::Relaxed) % endpoints.len().max(1);
        let endpoints = endpoints.iter().cycle().skip(start).take(endpoints.len());
        first_of(endpoints, |endpoint| self.open(endpoint)).await
    }

    fn server(&self) -> String {
        self.shared.place.clone()
    }
}

impl Session for EtcdSession {
    type Job = Job;

    /// Each request is a stream of its own.
    const AT_ONCE: usize = 256;

    async fn perform(&self, job: &Job) -> Result<Reply, Failure> {
        self.exchange(job).await
    }

    async fn answers(&self) -> bool {
        self.look().await.is_ok()
    }

    fn has_ended(&self) -> bool {
        self.link.has_ended()
    }

    async fn ended(&self) {
        self.link.ended().await;
    }
}

impl EtcdSession {
    /// Sends a transaction. One with writes leaves this process once at most.
    pub(crate) async fn transact(
        &self,
        request: TxnRequest,
        sent: Sent,
    ) -> Result<TxnResponse, Failure> {
        let Shared { place, tokens, .. } = &*self.shared;
        let mut again = sent == Sent::Nothing;
        loop {
            let token = tokens.token(&self.link).await.map_err(Failure::fatal)?;
            let answer = self.link.ask(TXN, request.clone(), token.text()).await;
            let failure = match answer {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let wants_token = error::is_about_token(&failure);
            if wants_token {
                tokens.forget(&token).await;
            }
            if !(wants_token && again) {
                return Err(error::translate(place, &failure, sent));
            }
            again = false;
        }
    }

    async fn look(&self) -> Result<Reply, Failure> {
        let read = Read::Key { key: Key::new("board"), unless: None };
        let exchange = Exchange { writes: Vec::new(), reads: vec![read] };
        let space = Space::new(&self.shared.options.prefix, "default");
        self.exchange(&Job { space, exchange }).await
    }
}
