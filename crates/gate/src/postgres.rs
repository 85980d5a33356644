//! A table in PostgreSQL, asked in the transaction that writes.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Transaction};

use crate::{GateError, Token};

/// Makes the table, once.
pub const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS incumbent_gate (resource text PRIMARY KEY, \
                          term bigint NOT NULL)";

/// The row is locked until the transaction ends, so that a higher term waits for it to commit, and a
/// lower one that waits is refused. What comes back is the highest term, this one included.
///
/// Under REPEATABLE READ and above the server fails what finds the row changed since its snapshot.
const RAISE: &str = "INSERT INTO incumbent_gate AS g (resource, term) VALUES ($1, $2) \
                     ON CONFLICT (resource) DO UPDATE SET term = greatest(g.term, EXCLUDED.term) \
                     RETURNING term";

/// Lets a term through for the rest of the transaction, if the gate has seen no higher one. Transactions
/// of one resource then take turns; a resource is whatever you name so.
///
/// On an error, roll back. Below a savepoint that is rolled back it holds nothing.
///
/// # Errors
/// [`GateError::Superseded`] if the gate has seen a higher term.
pub async fn admit(
    transaction: &Transaction<'_>,
    resource: &str,
    token: &Token,
) -> Result<(), GateError<Error>> {
    let (resource, term) = (&resource, &token.as_i64());
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(resource, Type::TEXT), (term, Type::INT8)];
    judge(token, transaction.query_typed(RAISE, &parameters).await)
}

/// Shows the gate a term by itself, with nothing to write: for a gate in front of something else, as
/// over HTTP. It says nothing about what happens afterwards.
///
/// # Errors
/// [`GateError::Superseded`] if the gate has seen a higher term.
pub async fn show(client: &Client, resource: &str, token: &Token) -> Result<(), GateError<Error>> {
    let (resource, term) = (&resource, &token.as_i64());
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(resource, Type::TEXT), (term, Type::INT8)];
    judge(token, client.query_typed(RAISE, &parameters).await)
}

fn judge(token: &Token, answer: Result<Vec<Row>, Error>) -> Result<(), GateError<Error>> {
    let rows = answer.map_err(GateError::Unreachable)?;
    let row = rows.first().ok_or_else(|| GateError::Unreadable("nothing".to_owned()))?;
    let term: i64 = row.try_get(0).map_err(GateError::Unreachable)?;
    crate::error::compare(token, term)
}
