//! Makes the tables, and tells whether they are ours to use.

use std::path::Path;

use incumbent_core::store::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::error::{During, translate};

/// The format of the tables that this version reads and writes.
const FORMAT: i64 = 1;

const SCHEMA: &str = include_str!("schema.sql");

/// Makes what is missing. A connection to a file that has everything takes no write lock.
pub(crate) fn prepare(
    connection: &mut Connection,
    path: &Path,
    prefix: &str,
    during: During,
) -> Result<(), StoreError> {
    let fail = |error| translate(path, &error, during);
    if !is_complete(connection, prefix).map_err(fail)? {
        make(connection, prefix).map_err(fail)?;
    }
    check(connection, path, prefix, during)
}

/// Whether this version can read tables of that format.
pub(crate) fn check(
    connection: &Connection,
    path: &Path,
    prefix: &str,
    during: During,
) -> Result<(), StoreError> {
    let fail = |error| translate(path, &error, during);
    match format(connection, prefix).map_err(fail)? {
        Some(FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => Err(StoreError::rejected(format!(
            "SQLite database {}: the tables {prefix}* have format {newer}, made by a newer \
             version of incumbent than this one, which knows format {FORMAT}. Upgrade this \
             program, or choose another prefix= or another file",
            path.display()
        ))),
        found => Err(StoreError::rejected(format!(
            "SQLite database {}: the table {prefix}meta says format {}, which no version of \
             incumbent wrote. Choose another prefix= or another file",
            path.display(),
            found.map_or("nothing".to_owned(), |format| format.to_string())
        ))),
    }
}

/// The statements that make everything.
pub(crate) fn sql(prefix: &str) -> String {
    SCHEMA.replace("{prefix}", prefix).replace("{format}", &FORMAT.to_string())
}

/// Whether all tables are there.
pub(crate) fn is_complete(connection: &Connection, prefix: &str) -> rusqlite::Result<bool> {
    let tables: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN (?1, ?2, ?3)",
        ["records", "hints", "meta"].map(|name| format!("{prefix}{name}")),
        |row| row.get(0),
    )?;
    Ok(tables == 3)
}

fn make(connection: &mut Connection, prefix: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(&sql(prefix))?;
    transaction.commit()
}

fn format(connection: &Connection, prefix: &str) -> rusqlite::Result<Option<i64>> {
    let sql = format!("SELECT value FROM {prefix}meta WHERE name = 'format'");
    let value = connection.query_row(&sql, [], |row| Ok(row.get_ref(0)?.as_i64().ok())).optional();
    value.map(Option::flatten)
}
