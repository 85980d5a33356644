//! Makes the tables, and tells whether they are ours to use.

use std::path::Path;

use incumbent_core::store::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::error::{During, translate};

/// The format of the tables that this version reads and writes.
const FORMAT: i64 = 1;

/// The version of the fence's view and trigger. The first didn't say which it was.
const ASSERT: i64 = 2;

const SCHEMA: &str = concat!(include_str!("schema.sql"), "\n", include_str!("assert.sql"));

/// Whether the lease's record `r` is held in the term that is asserted, by a member that is alive.
/// `->` would read better; a library that is older than it can't read the views above either, but
/// may read the application's own tables.
const HELD: &str = "CASE WHEN json_valid(CAST(r.value AS TEXT)) THEN
                json_extract(CAST(r.value AS TEXT), '$.name') = NEW.lease
                AND json_extract(CAST(r.value AS TEXT), '$.term') = CAST(NEW.term AS INTEGER)
                AND CAST(NEW.term AS INTEGER) = NEW.term
                AND EXISTS (
                    SELECT 1 FROM {prefix}records m
                    WHERE m.cluster = r.cluster
                      AND m.key = 'member/' || json_extract(CAST(r.value AS TEXT), '$.holder.member')
                      AND json_valid(CAST(m.value AS TEXT))
                      AND json_extract(CAST(m.value AS TEXT), '$.state') = 'alive')
              END";

/// The odd letters that are most common in names.
const ESCAPED: &str = "= .:,@+#";

/// The plain letters with which a name begins, as many as no key cuts off.
const LEAD: &str = "substr(NEW.lease, 1, min(160, length(NEW.lease) - length(ltrim(NEW.lease,
              'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-/'))))";

/// Makes what is missing. A connection to a file that has everything takes no write lock.
pub(crate) fn prepare(
    connection: &mut Connection,
    path: &Path,
    prefix: &str,
    during: During,
) -> Result<(), StoreError> {
    let fail = |error| translate(path, &error, during);
    // Files of a former version have no fence, or a former one.
    let complete = is_complete(connection, prefix)
        .and_then(|tables| Ok(tables && has_fence(connection, prefix)?));
    if !complete.map_err(fail)? {
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
    SCHEMA
        .replace("{held}", HELD)
        .replace("{lead}", LEAD)
        .replace("{escaped}", &escaped())
        .replace("{odd}", ESCAPED)
        .replace("{prefix}", prefix)
        .replace("{assert_version}", &ASSERT.to_string())
        .replace("{format}", &FORMAT.to_string())
}

/// The name as its key has it, if no other letters are in it and it isn't long. What escapes comes
/// first. Not more of them, because the parsers of old libraries overflow.
fn escaped() -> String {
    ESCAPED.bytes().fold("NEW.lease".to_owned(), |text, byte| {
        format!("replace({text}, '{}', '={byte:02X}')", char::from(byte))
    })
}

/// Whether the fence is there, of this version or a later one.
fn has_fence(connection: &Connection, prefix: &str) -> rusqlite::Result<bool> {
    let sql = format!(
        "SELECT count(*) FROM sqlite_schema, {prefix}meta WHERE sqlite_schema.type = 'trigger' \
         AND sqlite_schema.name = ?1 AND {prefix}meta.name = 'assert' AND {prefix}meta.value >= ?2"
    );
    let trigger = format!("{prefix}assert_insert");
    let found: i64 = connection.query_row(&sql, (trigger, ASSERT), |row| row.get(0))?;
    Ok(found == 1)
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
    // Another process may have been first, and be newer than this one.
    if !(is_complete(&transaction, prefix)? && has_fence(&transaction, prefix)?) {
        transaction.execute_batch(&sql(prefix))?;
    }
    transaction.commit()
}

fn format(connection: &Connection, prefix: &str) -> rusqlite::Result<Option<i64>> {
    let sql = format!("SELECT value FROM {prefix}meta WHERE name = 'format'");
    let value = connection.query_row(&sql, [], |row| Ok(row.get_ref(0)?.as_i64().ok())).optional();
    value.map(Option::flatten)
}
