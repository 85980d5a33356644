//! On MySQL and MariaDB, with mysql_async.

use std::future::Future;
use std::pin::Pin;

use incumbent::Assertion;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Transaction, TxOpts};

use crate::error::SUPERSEDED;
use crate::{Asserted, FenceError, private, statement};

impl private::Sealed for &mut Transaction<'_> {}

impl<'a> crate::Transaction for &'a mut Transaction<'_> {
    type Answer = Pin<Box<dyn Future<Output = Result<(), FenceError<Error>>> + Send + 'a>>;

    fn assert(self, assertion: Assertion) -> Self::Answer {
        Box::pin(async move {
            let sql = statement(&assertion, "mysql")?;
            let Assertion { cluster, lease, term, .. } = assertion;
            match self.exec_drop(sql, (cluster, lease, term)).await {
                Ok(()) => Ok(()),
                Err(Error::Server(said)) if said.state == SUPERSEDED => {
                    Err(FenceError::superseded(&said.message))
                }
                Err(error) => Err(FenceError::Database(error)),
            }
        })
    }
}

/// Runs work in a transaction that asserts the term first, and commits it if the work succeeds.
/// Otherwise it is rolled back, and if the future is dropped, before the connection is used again:
/// an error that the work swallows is the only way past the fence.
///
/// # Errors
/// As the work's own, or what the fence says, turned into the work's error.
pub async fn transaction<T, E: From<FenceError<Error>>>(
    connection: &mut Conn,
    term: &impl Asserted,
    work: impl AsyncFnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let fail = |error| E::from(FenceError::Database(error));
    let begun = connection.start_transaction(TxOpts::default()).await;
    let mut transaction = begun.map_err(fail)?;
    let asserted = term.assert(&mut transaction).await.map_err(E::from);
    let worked = match asserted {
        Ok(()) => work(&mut transaction).await,
        Err(error) => Err(error),
    };
    match worked {
        Ok(done) => {
            transaction.commit().await.map_err(|error| E::from(FenceError::Commit(error)))?;
            Ok(done)
        }
        Err(error) => {
            // What can't be rolled back ends with the connection.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}
