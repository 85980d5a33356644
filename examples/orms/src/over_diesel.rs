//! With diesel, on PostgreSQL.

use diesel::connection::{AnsiTransactionManager, TransactionManager as _};
use diesel::result::Error;
use diesel::sql_types::{BigInt, Text};
use diesel::{PgConnection, RunQueryDsl as _, sql_query};
use incumbent_fence::{Asserted, FenceError};

/// Inside of [`diesel::Connection::transaction`]. Diesel knows how deep it is, so that autocommit and
/// savepoints are refused here.
///
/// # Errors
/// Roll back, by returning an error from the transaction; the server commits nothing of it any more.
pub fn assert(
    connection: &mut PgConnection,
    term: &impl Asserted,
) -> Result<(), FenceError<Error>> {
    let depth = AnsiTransactionManager::transaction_manager_status_mut(connection)
        .transaction_depth()
        .map_err(FenceError::Database)?;
    if depth.is_none_or(|depth| depth.get() > 1) {
        return Err(FenceError::Unfit(
            "a term is asserted in the outermost transaction: in autocommit and below a savepoint \
             the lock may be gone before the work is committed",
        ));
    }
    let assertion = term.assertion();
    let query = sql_query(crate::statement(&assertion, "postgres")?)
        .bind::<Text, _>(&assertion.cluster)
        .bind::<Text, _>(&assertion.lease)
        .bind::<BigInt, _>(assertion.term);
    let done = query.execute(connection);
    done.map(|_| ()).map_err(|error| FenceError::read(&error.to_string(), error))
}
