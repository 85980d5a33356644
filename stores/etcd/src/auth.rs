//! Names and passwords become tokens, which etcd forgets after a while.

use std::sync::Arc;

use incumbent_core::store::StoreError;
use tokio::sync::Mutex;
use tonic::Code;

use crate::error;
use crate::link::{Link, TokenText};
use crate::options::User;
use crate::wire::{AUTHENTICATE, AuthenticateRequest, AuthenticateResponse};

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
        let mut current = self.current.lock().await;
        if let Some(token) = &*current {
            return Ok(token.clone());
        }
        let text = match &self.user {
            Some(user) => self.authenticate(link, user).await?,
            None => None,
        };
        Ok(current.insert(Token(Arc::new(text))).clone())
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
        let (name, password) = (user.name.clone(), user.password.read()?);
        let question = AuthenticateRequest { name, password };
        let answer = link.ask::<_, AuthenticateResponse>(AUTHENTICATE, question, None).await;
        match answer {
            Ok(AuthenticateResponse { token }) => {
                let mut text = TokenText::try_from(token).map_err(|_| {
                    StoreError::unavailable(format!(
                        "{}: the token that it gave can't be sent back",
                        self.place
                    ))
                })?;
                text.set_sensitive(true);
                Ok(Some(text))
            }
            // Passwords were switched off, and a name does no harm.
            Err(failure) if failure.status.code() == Code::FailedPrecondition => Ok(None),
            Err(failure) => {
                if error::means_trouble(&failure) {
                    link.suspect();
                }
                Err(error::translate(&self.place, &failure, false))
            }
        }
    }
}
