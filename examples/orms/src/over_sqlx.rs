//! With sqlx, on PostgreSQL and SQLite.

use incumbent_fence::{Asserted, FenceError};
use sqlx::{AssertSqlSafe, Error, Postgres, Sqlite, SqlitePool, Transaction};

/// On PostgreSQL: in a transaction of [`sqlx::PgPool::begin`], and not in one that was begun inside
/// it, for that is a savepoint.
///
/// # Errors
/// Roll back; the server commits nothing of this transaction any more.
pub async fn assert(
    transaction: &mut Transaction<'_, Postgres>,
    term: &impl Asserted,
) -> Result<(), FenceError<Error>> {
    let assertion = term.assertion();
    let sql = crate::statement(&assertion, "postgres")?;
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(&assertion.cluster)
        .bind(&assertion.lease)
        .bind(assertion.term);
    query.execute(&mut **transaction).await.map(|_| ()).map_err(read)
}

/// On SQLite, where a transaction has to have the write lock from its beginning: it begins here, and
/// comes back with the term asserted. Connections with attached files are refused, because a commit
/// of several files is several commits.
///
/// Everybody's beats wait until it ends. Put a bound on the work, such as `tokio::time::timeout` of a
/// tenth of the ttl: a transaction that is dropped is rolled back.
///
/// # Errors
/// Nothing was begun that could be committed.
pub async fn begin(
    pool: &SqlitePool,
    term: &impl Asserted,
) -> Result<Transaction<'static, Sqlite>, FenceError<Error>> {
    let assertion = term.assertion();
    let sql = crate::statement(&assertion, "sqlite")?;
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.map_err(FenceError::Database)?;
    let attached = "SELECT 1 FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";
    let attached = sqlx::query(attached).fetch_optional(&mut *transaction).await;
    if attached.map_err(FenceError::Database)?.is_some() {
        return Err(FenceError::Unfit(
            "other files are attached to this connection: use one of its own to the file that holds \
             the lease",
        ));
    }
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(&assertion.cluster)
        .bind(&assertion.lease)
        .bind(assertion.term);
    query.execute(&mut *transaction).await.map_err(read)?;
    Ok(transaction)
}

fn read(error: Error) -> FenceError<Error> {
    FenceError::read(&error.to_string(), error)
}
