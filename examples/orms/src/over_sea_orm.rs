//! With sea-orm, on PostgreSQL.

use incumbent_fence::{Asserted, FenceError};
use sea_orm::{ConnectionTrait as _, DatabaseTransaction, DbBackend, DbErr, Statement};

/// In a transaction of `DatabaseConnection::begin`, and not in one that was begun inside it, for that
/// is a savepoint.
///
/// # Errors
/// Roll back; the server commits nothing of this transaction any more.
pub async fn assert(
    transaction: &DatabaseTransaction,
    term: &impl Asserted,
) -> Result<(), FenceError<DbErr>> {
    let assertion = term.assertion();
    let sql = crate::statement(&assertion, "postgres")?;
    let values = [assertion.cluster.into(), assertion.lease.into(), assertion.term.into()];
    let statement = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
    let done = transaction.execute_raw(statement).await;
    done.map(|_| ()).map_err(|error| FenceError::read(&error.to_string(), error))
}
