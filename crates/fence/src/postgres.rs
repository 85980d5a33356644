//! On PostgreSQL, with tokio-postgres.

use std::future::Future;
use std::pin::Pin;

use incumbent::Assertion;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Transaction};

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
            match self.query_typed(&sql, &parameters).await {
                Ok(_) => Ok(()),
                Err(error) => Err(match error.as_db_error() {
                    Some(said) if said.code().code() == SUPERSEDED => {
                        FenceError::superseded(said.message())
                    }
                    _ => FenceError::Database(error),
                }),
            }
        })
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
    transaction.commit().await.map_err(fail)?;
    Ok(done)
}
