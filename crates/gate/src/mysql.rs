//! A table in MySQL or MariaDB, asked in the transaction that writes.

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Transaction};

use crate::{GateError, Token};

/// Makes the table, once.
pub const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS incumbent_gate (resource VARBINARY(255) \
                          PRIMARY KEY, term BIGINT NOT NULL) ENGINE=InnoDB";

/// Locks the row until the transaction ends, also where it changes nothing.
const RAISE: &str = "INSERT INTO incumbent_gate (resource, term) VALUES (?, ?) \
                     ON DUPLICATE KEY UPDATE term = GREATEST(term, VALUES(term))";

/// As it stands, and not as an older snapshot has it.
const LOOK: &str = "SELECT term FROM incumbent_gate WHERE resource = ? FOR UPDATE";

/// Lets a term through for the rest of the transaction, if the gate has seen no higher one. Transactions
/// of one resource then take turns; a resource is whatever you name so, in at most 255 bytes.
///
/// **On an error, roll back**: the server doesn't. Below a savepoint that is rolled back it holds
/// nothing.
///
/// # Errors
/// [`GateError::Superseded`] if the gate has seen a higher term.
pub async fn admit(
    transaction: &mut Transaction<'_>,
    resource: &str,
    token: &Token,
) -> Result<(), GateError<Error>> {
    let raised = transaction.exec_drop(RAISE, (resource, token.as_i64())).await;
    raised.map_err(GateError::Unreachable)?;
    let found: Option<i64> =
        transaction.exec_first(LOOK, (resource,)).await.map_err(GateError::Unreachable)?;
    let highest = found.ok_or_else(|| GateError::Unreadable("nothing".to_owned()))?;
    crate::error::compare(token, highest)
}
