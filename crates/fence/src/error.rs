/// Why a term was not asserted, or its work not committed. Whatever it is: roll back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError<E> {
    /// The term is over. Stop: somebody else may be doing this work.
    #[error(
        "the term is over: {}, held by {}",
        term.map_or("there is no such lease".to_owned(), |term| format!("found term {term}")),
        held_by.as_deref().unwrap_or("nobody")
    )]
    Superseded {
        /// The node that holds the lease now. It may be this term's own, if its membership is over
        /// and nobody has taken the lease yet.
        held_by: Option<String>,
        /// The lease's term now.
        term: Option<u64>,
    },
    /// The lease isn't in a database of this kind, so that nothing here can stand for it.
    #[error("the lease is in a store of another kind ({store}): a transaction here can't hold it")]
    Elsewhere {
        /// Where it is.
        store: &'static str,
    },
    /// The transaction is of a kind in which the assertion would hold nothing.
    #[error("{0}")]
    Unfit(&'static str),
    /// The transaction took longer than allowed, and was rolled back.
    #[error("the transaction took longer than allowed, and was rolled back")]
    TooLong,
    /// The database couldn't be asked. Whether the term is held is unknown.
    #[error("the term could not be asserted: {0}")]
    Database(#[source] E),
    /// The term was asserted and the work done, but the commit failed. A server may have committed before
    /// it could say so: look whether the work is there before it is done again.
    #[error("the commit failed: {0}. Look whether the work is there before it is done again")]
    Commit(#[source] E),
}

impl<E> FenceError<E> {
    /// What an error of another driver or an ORM means, by what it says: [`Self::Superseded`] if the
    /// message is that of the assertion, else [`Self::Database`]. What SQLite says names no holder.
    ///
    /// ```
    /// use incumbent_fence::FenceError;
    ///
    /// let said = "incumbent: term 7 of lease \"scheduler\" is over: found term 8, held by \"b\"";
    /// let error = FenceError::read(said, ());
    /// assert!(matches!(error, FenceError::Superseded { term: Some(8), .. }));
    /// let error = FenceError::read("connection refused", ());
    /// assert!(matches!(error, FenceError::Database(())));
    /// ```
    pub fn read(message: &str, error: E) -> Self {
        let said = message.find("incumbent: ").map_or("", |from| &message[from..]);
        if said.starts_with("incumbent: term ") && said.contains(" is over: found ") {
            return Self::superseded(said);
        }
        if said.starts_with(OVER) {
            return Self::Superseded { held_by: None, term: None };
        }
        Self::Database(error)
    }

    /// What the database says of a term that is over, read back.
    pub(crate) fn superseded(message: &str) -> Self {
        let found = message.rsplit_once(": found ").map_or("", |(_, found)| found);
        let (term, held_by) = found.split_once(", held by ").unwrap_or((found, ""));
        let term = term.strip_prefix("term ").and_then(|term| term.parse().ok());
        let held_by = held_by.strip_prefix('"').map(|name| {
            // MySQL's messages are cut, so that the closing quote may be missing.
            name.rsplit_once('"').map_or(name, |(name, _)| name).to_owned()
        });
        Self::Superseded { held_by, term }
    }
}

/// What SQLite's trigger says; a literal, because old libraries read no other.
pub(crate) const OVER: &str = "incumbent: the term is over";

/// The SQLSTATE of a term that is over.
#[cfg(any(feature = "mysql_async", feature = "tokio-postgres"))]
pub(crate) const SUPERSEDED: &str = "IN001";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(found: &str) -> (Option<u64>, Option<String>) {
        let message =
            format!("incumbent: term 7 of lease \"a: found term 9\" is over: found {found}");
        match FenceError::<()>::superseded(&message) {
            FenceError::Superseded { held_by, term } => (term, held_by),
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn what_the_databases_say_is_read_back() {
        assert_eq!(read("term 8, held by \"n\""), (Some(8), Some("n".to_owned())));
        assert_eq!(read("term 8, held by \"n"), (Some(8), Some("n".to_owned())));
        assert_eq!(read("term 8, held by nobody"), (Some(8), None));
        assert_eq!(read("no such lease"), (None, None));
        let closed = read("term 7, held by \"n\", whose membership is over");
        assert_eq!(closed, (Some(7), Some("n".to_owned())));
    }
}
