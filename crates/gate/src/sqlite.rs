//! A table in SQLite, asked in the transaction that writes.

use rusqlite::{Error, Transaction, params};

use crate::{GateError, Token};

/// Makes the table, once.
pub const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS incumbent_gate (resource TEXT PRIMARY KEY, \
                          term INTEGER NOT NULL) WITHOUT ROWID";

/// It writes, so that it has the file's only write lock from here on.
const RAISE: &str = "INSERT INTO main.incumbent_gate (resource, term) VALUES (?1, ?2) \
                     ON CONFLICT (resource) DO UPDATE SET term = max(term, excluded.term)";

const LOOK: &str = "SELECT term FROM main.incumbent_gate WHERE resource = ?1";

/// Lets a term through for the rest of the transaction, if the gate has seen no higher one. The table
/// is in the main file, and so must be what the transaction writes: a commit of several files is
/// several commits.
///
/// **On an error, roll back**: SQLite doesn't, unless the transaction is dropped. A deferred transaction
/// that has read before gets `SQLITE_BUSY` if the file has changed since: begin with
/// `TransactionBehavior::Immediate`.
///
/// # Errors
/// [`GateError::Superseded`] if the gate has seen a higher term.
pub fn admit(
    transaction: &Transaction<'_>,
    resource: &str,
    token: &Token,
) -> Result<(), GateError<Error>> {
    let raised = transaction.execute(RAISE, params![resource, token.as_i64()]);
    raised.map_err(GateError::Unreachable)?;
    let found = transaction.query_row(LOOK, params![resource], |row| row.get(0));
    crate::error::compare(token, found.map_err(GateError::Unreachable)?)
}
