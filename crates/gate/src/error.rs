/// Why a gate let nothing through. In a transaction: roll back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError<E> {
    /// The gate has seen a higher term, so that this one is over. Nothing was written. Stop:
    /// somebody else may be doing this work.
    #[error("the term is over: the gate has seen term {term}")]
    Superseded {
        /// The highest term that the gate has seen.
        term: u64,
    },
    /// What the gate remembers isn't a term: something else uses its place. Nothing was written.
    #[error("the gate's memory holds {0:?}, which isn't a term: choose another place for it")]
    Unreadable(String),
    /// Somebody else wrote at the same time, under this term or a lower one, and what the write
    /// was based on is no longer there. Nothing was written: read it again.
    #[error("somebody else has written meanwhile: read again")]
    Changed,
    /// The gate couldn't be asked. If the request may have been sent, what was written is unknown.
    #[error("the gate could not be asked: {0}")]
    Unreachable(#[source] E),
}

impl<E> GateError<E> {
    /// The same with another error for what couldn't be asked.
    pub fn map<F>(self, f: impl FnOnce(E) -> F) -> GateError<F> {
        match self {
            Self::Superseded { term } => GateError::Superseded { term },
            Self::Unreadable(found) => GateError::Unreadable(found),
            Self::Changed => GateError::Changed,
            Self::Unreachable(error) => GateError::Unreachable(f(error)),
        }
    }
}

/// What a gate says of a term that it has remembered as text.
#[cfg(any(feature = "etcd", feature = "nats", feature = "object_store", feature = "redis"))]
pub(crate) fn seen<E>(text: &[u8]) -> Result<u64, GateError<E>> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    let wrong = || {
        let start = text.get(..40).unwrap_or(text);
        GateError::Unreadable(String::from_utf8_lossy(start).into_owned())
    };
    number.filter(|term| *term <= i64::MAX as u64).ok_or_else(wrong)
}

/// Whether the highest term that a table knows, this one included, is this one.
#[cfg(any(feature = "mysql_async", feature = "rusqlite", feature = "tokio-postgres"))]
pub(crate) fn compare<E>(token: &crate::Token, highest: i64) -> Result<(), GateError<E>> {
    match u64::try_from(highest) {
        Ok(term) if term <= token.term() => Ok(()),
        Ok(term) => Err(GateError::Superseded { term }),
        Err(_) => Err(GateError::Unreadable(highest.to_string())),
    }
}
