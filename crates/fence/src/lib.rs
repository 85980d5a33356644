//! Asserts a term of incumbent inside the application's own transaction, so that a leader that was
//! superseded can't commit. For leases that are in the same database as the work.
//!
//! ```no_run
//! # #[cfg(feature = "tokio-postgres")]
//! # async fn example(term: incumbent::Term, client: &mut tokio_postgres::Client)
//! # -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use incumbent_fence::Asserted as _;
//!
//! let transaction = client.transaction().await?;
//! term.assert(&transaction).await?;
//! transaction.execute("UPDATE invoices SET settled = true", &[]).await?;
//! transaction.commit().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | feature | `term.assert(…)` takes | begin, assert, work and commit in one |
//! | --- | --- | --- |
//! | `tokio-postgres` | `&tokio_postgres::Transaction`, and a future comes back | `postgres::transaction` |
//! | `mysql_async` | `&mut mysql_async::Transaction`, the same | `mysql::transaction` |
//! | `rusqlite` | `&rusqlite::Transaction`, in write mode and without attached files | `sqlite::transaction`, which bounds it too |
//!
//! Other drivers and ORMs run the one statement of [`Assertion`] by themselves, and turn their error
//! into the same type by [`FenceError::read`].
//!
//! A function that must run under a leader alone takes a `&Term`. There is no way to get one but to be
//! elected:
//!
//! ```
//! fn settle(term: &incumbent::Term) -> u64 {
//!     term.number() // and whatever only a leader may do
//! }
//! ```
//!
//! ```compile_fail
//! # fn settle(term: &incumbent::Term) -> u64 { term.number() }
//! settle(&incumbent::Term { number: 7 });
//! ```
//!
//! ```compile_fail
//! # fn settle(term: &incumbent::Term) -> u64 { term.number() }
//! settle(&incumbent::Term::default());
//! ```
//!
//! Nor does a connection do where a transaction is asked for:
//!
//! ```compile_fail
//! # async fn example(term: incumbent::Term, client: tokio_postgres::Client) {
//! use incumbent_fence::Asserted as _;
//! let _ = term.assert(&client).await;
//! # }
//! ```
//!
//! On an error, roll back. PostgreSQL sees to that by itself; MySQL and SQLite commit what a
//! program lets them commit after a failed statement. With `tokio-postgres` a nested transaction is
//! a savepoint of the same type: assert in the outermost, because a savepoint that is rolled back
//! takes the lock with it.

mod error;
#[cfg(feature = "mysql_async")]
pub mod mysql;
#[cfg(feature = "tokio-postgres")]
pub mod postgres;
#[cfg(feature = "rusqlite")]
pub mod sqlite;

use incumbent::{Assertion, Duty, Leadership, Run, Slot, Term};

pub use error::FenceError;

/// What can be asserted: a term of leadership, a duty, a run of a periodic job. None of them can be
/// made but by being elected, so that a function that takes one runs under a leader alone.
pub trait Asserted {
    /// What the database has to be told.
    fn assertion(&self) -> Assertion;

    /// Makes the term stand until the transaction ends, or fails: [`FenceError::Superseded`] if it
    /// is over, another error if nobody knows.
    fn assert<T: Transaction>(&self, transaction: T) -> T::Answer {
        transaction.assert(self.assertion())
    }
}

impl Asserted for Term {
    fn assertion(&self) -> Assertion {
        Term::assertion(self)
    }
}

/// What has a term asserts it.
macro_rules! asserted {
    ($($holder:ty),+) => {$(
        impl Asserted for $holder {
            fn assertion(&self) -> Assertion {
                Term::assertion(self)
            }
        }
    )+};
}

asserted!(Duty, Leadership, Run, Slot);

impl Asserted for Assertion {
    fn assertion(&self) -> Assertion {
        self.clone()
    }
}

/// An open transaction of a driver. There is none for a connection: in autocommit the lock would be
/// gone with the statement.
pub trait Transaction: private::Sealed {
    /// A future of a result where the driver has futures, else the result.
    type Answer;

    /// Asserts a term.
    fn assert(self, assertion: Assertion) -> Self::Answer;
}

mod private {
    pub trait Sealed {}
}

/// The statement, if the lease is in such a database.
#[cfg(any(feature = "mysql_async", feature = "rusqlite", feature = "tokio-postgres"))]
fn statement<E>(assertion: &Assertion, kind: &str) -> Result<String, FenceError<E>> {
    let here = assertion.sql.as_ref().filter(|_| assertion.store == kind);
    let sql = here.ok_or(FenceError::Elsewhere { store: assertion.store })?;
    Ok(sql.statement.clone())
}
