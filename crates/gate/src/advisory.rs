use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use crate::{GateError, Token};

/// A gate in this process's memory: it forgets at each restart, and knows nothing of other
/// processes. Good for refusing most of what is stale early, and never for a promise.
#[derive(Debug, Default)]
pub struct Advisory {
    highest: Mutex<BTreeMap<String, u64>>,
}

impl Advisory {
    /// One that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a term through if no higher one of its lease has come here.
    ///
    /// # Errors
    /// [`GateError::Superseded`] if one has.
    pub fn admit(&self, token: &Token) -> Result<(), GateError<Infallible>> {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = highest.entry(token.lease().to_owned()).or_default();
        if *seen > token.term() {
            return Err(GateError::Superseded { term: *seen });
        }
        *seen = token.term();
        Ok(())
    }
}
