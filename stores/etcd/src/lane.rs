//! A connection of its own for each kind of work, opened when needed and given up when in doubt.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use incumbent_core::store::{ErrorKind, StoreError};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use crate::auth::{Token, Tokens};
use crate::error;
use crate::link::{Failure, Flight, Link};
use crate::options::EtcdOptions;
use crate::wire::{TXN, TxnRequest, TxnResponse};

/// What all lanes of a store share.
pub(crate) struct Common {
    pub(crate) options: EtcdOptions,
    pub(crate) place: String,
    pub(crate) handle: Handle,
    pub(crate) tokens: Tokens,
}

pub(crate) struct Lane {
    common: Arc<Common>,
    link: Mutex<Option<Link>>,
    /// Which endpoint to try next: after one that failed, the one behind it.
    next: AtomicUsize,
}

impl Lane {
    /// Starts with this endpoint, or the first if there are fewer.
    pub(crate) fn new(common: &Arc<Common>, first: usize) -> Self {
        let next = AtomicUsize::new(first);
        Self { common: Arc::clone(common), link: Mutex::new(None), next }
    }

    /// Sends a transaction. One with writes leaves this process once at most.
    pub(crate) async fn transact(
        &self,
        request: TxnRequest,
        writes: bool,
    ) -> Result<TxnResponse, StoreError> {
        let Common { options, place, tokens, .. } = &*self.common;
        let mut alarm = pin!(sleep(options.timeout));
        let mut first = true;
        loop {
            let (link, token) = tokio::select! {
                biased;
                ready = self.ready() => ready?,
                () = &mut alarm => return Err(error::timed_out(place, options.timeout, false)),
            };
            let flight = Flight::new(&link);
            let failure = tokio::select! {
                biased;
                answer = link.ask(TXN, request.clone(), token.text()) => match answer {
                    Ok(response) => {
                        flight.landed();
                        return Ok(response);
                    }
                    Err(failure) => failure,
                },
                () = &mut alarm => return Err(error::timed_out(place, options.timeout, writes)),
            };
            if !error::means_trouble(&failure) {
                flight.landed();
            }
            if error::is_about_token(&failure) {
                tokens.forget(&token).await;
            }
            if !(first && may_repeat(&failure, writes)) {
                return Err(error::translate(place, &failure, writes));
            }
            first = false;
        }
    }

    /// A connection that looks sound, and a token for it. Nothing of a caller's has been sent yet,
    /// so every error of this is a sure one.
    pub(crate) async fn ready(&self) -> Result<(Link, Token), StoreError> {
        let mut current = self.link.lock().await;
        let link = match &*current {
            Some(link) if link.is_fit() => link.clone(),
            _ => {
                // The old one goes first, so that its server needn't hold both.
                *current = None;
                current.insert(self.connect().await?).clone()
            }
        };
        drop(current);
        // A server that hangs while it is asked for a token must not be asked again for ever.
        let flight = Flight::new(&link);
        let token = self.common.tokens.token(&link).await?;
        flight.landed();
        Ok((link, token))
    }

    async fn connect(&self) -> Result<Link, StoreError> {
        let Common { options, place, handle, .. } = &*self.common;
        let mut errors = Vec::new();
        for _ in &options.endpoints {
            // Moved on beforehand: should this be given up half-way, the next attempt begins with
            // the next endpoint.
            let at = self.next.fetch_add(1, Ordering::Relaxed) % options.endpoints.len().max(1);
            let Some(endpoint) = options.endpoints.get(at) else { continue };
            let opening = Link::open(options, endpoint, handle);
            match timeout(options.connect_timeout, opening).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) => errors.push(error),
                Err(_) => errors.push(StoreError::unavailable(format!(
                    "etcd at {endpoint} took no connection within {:?}",
                    options.connect_timeout
                ))),
            }
        }
        Err(worst(place, errors))
    }
}

/// Whether a second attempt is no second write.
fn may_repeat(failure: &Failure, writes: bool) -> bool {
    !failure.sent || (!writes && error::is_about_token(failure))
}

/// All endpoints failed. Only if all of them are set up wrongly, waiting won't help.
fn worst(place: &str, errors: Vec<StoreError>) -> StoreError {
    let rejected = errors.iter().all(|error| error.kind == ErrorKind::Rejected);
    let kind = if rejected { ErrorKind::Rejected } else { ErrorKind::Unavailable };
    let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
    let message = match messages.len() {
        0 => format!("{place}: no endpoint is known"),
        _ => messages.join("; "),
    };
    StoreError { kind, message }
}
