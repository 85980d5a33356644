use incumbent_core::keys;
use incumbent_core::store::AssertionSql;

use crate::lead::term::Term;

/// All that a database has to be told to assert a term inside an application's own transaction,
/// where the lease is in that same database. `incumbent-fence` does it for Rust's drivers; this is
/// for others, and for other languages.
///
/// The statement fails by itself unless the term is held, and then it stands until the transaction
/// ends: no take-over commits before. Run it at the top level of an open transaction, never below a
/// savepoint that may be rolled back and never in autocommit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assertion {
    /// The cluster's name.
    pub cluster: String,
    /// The lease's name; of a duty, that of its lease.
    pub lease: String,
    /// The key of the lease's record, for the query that needs no function.
    pub key: String,
    /// The term, as databases like it.
    pub term: i64,
    /// The kind of store that the lease is in: `postgres`, `mysql`, `sqlite` or another.
    pub store: &'static str,
    /// What to run there, if it is a database.
    pub sql: Option<AssertionSql>,
}

impl Term {
    /// What asserts this term in the database that holds the lease.
    #[must_use]
    pub fn assertion(&self) -> Assertion {
        let store = &self.cluster.store;
        Assertion {
            cluster: self.cluster.name().to_owned(),
            lease: self.lease().as_str().to_owned(),
            key: keys::lease(self.lease()).as_str().to_owned(),
            term: self.fence().as_i64(),
            store: store.capabilities().kind,
            sql: store.assertion(),
        }
    }
}
