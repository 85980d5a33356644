//! Names and passwords become tokens, which etcd forgets after a while.

use std::sync::Arc;
use std::time::Duration;

use incumbent_core::store::StoreError;
use incumbent_store_common::Sent;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tonic::Code;

use crate::error;
use crate::link::{Link, TokenText};
use crate::options::User;
use crate::wire::{AUTHENTICATE, AuthenticateRequest, AuthenticateResponse};

/// How long a connection waits for the token that another one asks for: that one may hang.
const PATIENCE: Duration = Duration::from_secs(1);

/// The token that all connections of a store share: making one costs the server a slow hash.
pub(crate) struct Tokens {
    user: Option<User>,
    place: String,
    current: Mutex<Option<Token>>,
}

/// A token, or nothing where the server asks for none.
#[derive(Clone)]
pub(crate) struct Token(Arc<Option<TokenText>>);

impl Token {
    pub(crate) fn text(&self) -> Option<&TokenText> {
        self.0.as_ref().as_ref()
    }
}

impl Tokens {
    pub(crate) fn new(user: Option<User>, place: String) -> Self {
        Self { user, place, current: Mutex::new(None) }
    }

    /// The current token, made over this connection if there is none.
    pub(crate) async fn token(&self, link: &Link) -> Result<Token, StoreError> {
        let mut current = timeout(PATIENCE, self.current.lock()).await.ok();
        if let Some(token) = current.as_ref().and_then(|current| current.as_ref()) {
            return Ok(token.clone());
        }
        let text = match &self.user {
            Some(user) => self.authenticate(link, user).await?,
            None => None,
        };
        let token = Token(Arc::new(text));
        if let Some(current) = &mut current {
            **current = Some(token.clone());
        }
        Ok(token)
    }

    /// Forgets a token that the server didn't take, unless there is a newer one already.
    pub(crate) async fn forget(&self, token: &Token) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(&current.0, &token.0)) {
            *current = None;
        }
    }

    async fn authenticate(
        &self,
        link: &Link,
        user: &User,
    ) -> Result<Option<TokenText>, StoreError> {
        let password = user.password.read("passwordfile")?.unwrap_or_default();
        let question = AuthenticateRequest { name: user.name.clone(), password };
        let answer = link.ask::<_, AuthenticateResponse>(AUTHENTICATE, question, None).await;
        match answer {
            Ok(AuthenticateResponse { token }) => {
                let mut text = TokenText::try_from(token).map_err(|_| {
                    StoreError::unavailable(format!(
                        "{}: the token that it issued can't be sent back",
                        self.place
                    ))
                })?;
                text.set_sensitive(true);
                Ok(Some(text))
            }
            // Passwords were switched off, and a name does no harm.
            Err(failure) if failure.status.code() == Code::FailedPrecondition => Ok(None),
            Err(failure) => Err(error::translate(&self.place, &failure, Sent::Nothing).error),
        }
    }
}
