//! A term asserted through sqlx, diesel and sea-orm: copy the function for yours.
//!
//! Each takes a transaction that is open, runs the one statement of [`Assertion`] in it and tells a
//! term that is over from a database that can't be asked. Roll back after any error.

pub mod over_diesel;
pub mod over_sea_orm;
pub mod over_sqlx;

use incumbent::Assertion;
use incumbent_fence::FenceError;

/// The statement, if the lease is in such a database.
fn statement<E>(assertion: &Assertion, kind: &str) -> Result<String, FenceError<E>> {
    let here = assertion.sql.as_ref().filter(|_| assertion.store == kind);
    let sql = here.ok_or(FenceError::Elsewhere { store: assertion.store })?;
    Ok(sql.statement.clone())
}
