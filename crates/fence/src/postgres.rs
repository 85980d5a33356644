//! On PostgreSQL, with tokio-postgres.

use std::future::Future;
use std::pin::Pin;

use incumbent::Assertion;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Statement, Transaction};

use crate::error::SUPERSEDED;
use crate::{Asserted, FenceError, private, statement};

impl private::Sealed for &Transaction<'_> {}

impl<'a> crate::Transaction for &'a Transaction<'_> {
    type Answer = Pin<Box<dyn Future<Output = Result<(), FenceError<Error>>> + Send + 'a>>;

    fn assert(self, assertion: Assertion) -> Self::Answer {
        Box::pin(async move {
            let sql = statement(&assertion, "postgres")?;
            let Assertion { cluster, lease, term, .. } = &assertion;
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
                [(cluster, Type::TEXT), (lease, Type::TEXT), (term, Type::INT8)];
            let asserted = self.query_typed(&sql, &parameters).await;
            asserted.map(drop).map_err(told)
        })
    }
}

fn told(error: Error) -> FenceError<Error> {
    match error.as_db_error() {
        Some(said) if said.code().code() == SUPERSEDED => FenceError::superseded(said.message()),
        _ => FenceError::Database(error),
    }
}

/// The statement of the assertion, parsed once for a connection. `term.assert(…)` lets the server parse
/// and plan it each time, which costs the server about half as much again as the assertion itself. Where
/// a connection asserts often, keep one of these with it.
///
/// ```no_run
/// # async fn example(term: incumbent::Term, mut client: tokio_postgres::Client)
/// # -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let assertion = incumbent_fence::postgres::Prepared::new(&client, &term).await?;
/// loop {
///     let transaction = client.transaction().await?;
///     assertion.assert(&transaction, &term).await?;
///     transaction.execute("UPDATE invoices SET settled = true", &[]).await?;
///     transaction.commit().await?;
/// #   break;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Prepared {
    statement: Statement,
    sql: String,
}

impl Prepared {
    /// Prepares it on this connection, for all terms of the store that this one is of.
    ///
    /// # Errors
    /// If the database can't be asked, or the lease is elsewhere.
    pub async fn new(client: &Client, term: &impl Asserted) -> Result<Self, FenceError<Error>> {
        let sql = statement(&term.assertion(), "postgres")?;
        let types = [Type::TEXT, Type::TEXT, Type::INT8];
        let statement = client.prepare_typed(&sql, &types).await.map_err(FenceError::Database)?;
        Ok(Self { statement, sql })
    }

    /// Makes the term stand until the transaction ends, or fails, as [`Asserted::assert`] does. The
    /// transaction has to be one of the connection on which this was prepared.
    ///
    /// # Errors
    /// [`FenceError::Superseded`] if the term is over, another one if nobody knows.
    pub async fn assert(
        &self,
        transaction: &Transaction<'_>,
        term: &impl Asserted,
    ) -> Result<(), FenceError<Error>> {
        let assertion = term.assertion();
        if statement(&assertion, "postgres")? != self.sql {
            return Err(FenceError::Unfit(
                "the statement was prepared for a term of another store: prepare one for each",
            ));
        }
        let Assertion { cluster, lease, term, .. } = &assertion;
        let asserted = transaction.query(&self.statement, &[cluster, lease, term]).await;
        asserted.map(drop).map_err(told)
    }
}

/// Runs work in a transaction that asserts the term first, and commits it if the work succeeds.
/// Otherwise, or if the future is dropped, nothing of it is there.
///
/// ```no_run
/// # async fn example(term: incumbent::Term, mut client: tokio_postgres::Client)
/// # -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # type Failure = Box<dyn std::error::Error + Send + Sync>;
/// incumbent_fence::postgres::transaction(&mut client, &term, async |transaction| {
///     transaction.execute("UPDATE invoices SET settled = true", &[]).await?;
///     Ok::<(), Failure>(())
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As the work's own, or what the fence says, turned into the work's error.
pub async fn transaction<T, E: From<FenceError<Error>>>(
    client: &mut Client,
    term: &impl Asserted,
    work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let fail = |error| E::from(FenceError::Database(error));
    let transaction = client.transaction().await.map_err(fail)?;
    term.assert(&transaction).await?;
    let done = work(&transaction).await?;
    transaction.commit().await.map_err(|error| E::from(FenceError::Commit(error)))?;
    Ok(done)
}
