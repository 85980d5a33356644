//! What holds on SQLite, and what doesn't.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use incumbent::{Assertion, Moment, clock};
use rusqlite::{Connection, Error, OptionalExtension, Transaction, TransactionState, params};
use rusqlite::{MAIN_DB, TransactionBehavior};

use crate::error::OVER;
use crate::{Asserted, FenceError, private, statement};

/// How often SQLite asks whether it shall go on, in steps of its virtual machine: some tens of
/// microseconds.
const STEPS: i32 = 1000;

impl private::Sealed for &Transaction<'_> {}

/// Only in a transaction that has the write lock already, which one begun as immediate has, and
/// without attached files: commits of several files with write-ahead logs are several commits, and
/// a crash may leave some of them out.
impl crate::Transaction for &Transaction<'_> {
    type Answer = Result<(), FenceError<Error>>;

    fn assert(self, assertion: Assertion) -> Self::Answer {
        let sql = statement(&assertion, "sqlite")?;
        let Assertion { cluster, lease, term, .. } = &assertion;
        let state = self.transaction_state(Some(MAIN_DB)).map_err(FenceError::Database)?;
        if state != TransactionState::Write {
            return Err(FenceError::Unfit(
                "this transaction has no write lock, so that what it has read may be stale: begin \
                 it with TransactionBehavior::Immediate",
            ));
        }
        if has_attached(self).map_err(FenceError::Database)? {
            return Err(FenceError::Unfit(
                "other files are attached to this connection, and a commit of several files is \
                 several commits: use a connection of its own to the file that holds the lease",
            ));
        }
        match self.execute(&sql, params![cluster, lease, term]) {
            Ok(_) => Ok(()),
            Err(Error::SqliteFailure(_, Some(said))) if said == OVER => {
                let found = standing(self, &assertion).map_err(FenceError::Database)?;
                let (term, held_by) = found.unwrap_or((None, None));
                Err(FenceError::Superseded { held_by, term })
            }
            Err(error) => Err(FenceError::Database(error)),
        }
    }
}

/// The lease's term and holder.
type Standing = (Option<u64>, Option<String>);

fn standing(connection: &Connection, assertion: &Assertion) -> Result<Option<Standing>, Error> {
    let sql = assertion.sql.as_ref().and_then(|sql| sql.standing.as_deref());
    let Some(sql) = sql else { return Ok(None) };
    let read = |row: &rusqlite::Row<'_>| {
        let term: Option<i64> = row.get(0)?;
        Ok((term.and_then(|term| term.try_into().ok()), row.get(1)?))
    };
    connection.query_row(sql, params![assertion.cluster, assertion.lease], read).optional()
}

fn has_attached(connection: &Connection) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";
    connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)? > 0))
}

/// Runs work in a transaction that asserts the term, and commits it if the work succeeds.
///
/// On SQLite such a transaction keeps everybody's beats waiting, this leader's too. So it is rolled
/// back with [`FenceError::TooLong`] when it has taken longer than `within`: a tenth of the ttl is
/// much. A statement is interrupted at that moment; what the work does between statements isn't,
/// and nothing of it is committed. A progress handler that the connection had is gone afterwards.
///
/// # Errors
/// As the work's own, or what the fence says, turned into the work's error.
pub fn transaction<T, E: From<FenceError<Error>>>(
    connection: &mut Connection,
    term: &impl Asserted,
    within: Duration,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let until = Arc::new(OnceLock::new());
    let limit = Arc::clone(&until);
    let late = move || limit.get().is_some_and(|until| clock::now() >= *until);
    let fail = |error| E::from(FenceError::Database(error));
    connection.progress_handler(STEPS, Some(late)).map_err(fail)?;
    let done = bounded(connection, term, &until, within, work);
    // What was committed stands, and it could be set just now.
    let _ = connection.progress_handler(0, None::<fn() -> bool>);
    done
}

fn bounded<T, E: From<FenceError<Error>>>(
    connection: &mut Connection,
    term: &impl Asserted,
    until: &OnceLock<Moment>,
    within: Duration,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let fail = |error| E::from(FenceError::Database(error));
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    // From here on others wait.
    let until = *until.get_or_init(|| clock::now() + within);
    let worked = term.assert(&transaction).map_err(E::from).and_then(|()| work(&transaction));
    if clock::now() >= until {
        // Dropped, it is rolled back.
        return Err(FenceError::TooLong.into());
    }
    let done = worked?;
    transaction.commit().map_err(|error| E::from(FenceError::Commit(error)))?;
    Ok(done)
}
