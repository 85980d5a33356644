//! Applies the writes of an exchange and answers its reads, on one connection.

use std::time::Duration;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Outcome, Put, Read, Record, Reply, StoreError,
    Version, Write,
};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params};

use crate::database::Database;
use crate::error::{During, keeps_connection, translate};

/// The SQL of this store. Each text is prepared once a connection.
#[derive(Debug)]
pub(crate) struct Statements {
    create: String,
    swap: String,
    delete: String,
    hint: String,
    hints: String,
    one: String,
    below: String,
}

/// An error, and whether the connection has to go.
pub(crate) struct Failure {
    pub(crate) error: StoreError,
    pub(crate) reconnect: bool,
}

impl Statements {
    pub(crate) fn new(prefix: &str) -> Self {
        let now = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
        let columns = format!("key, value, stamp, {now} - written_ms");
        let records = format!("{prefix}records");
        let hints = format!("{prefix}hints");
        Self {
            create: format!(
                "INSERT INTO {records} (cluster, key, value, stamp, written_ms) \
                 VALUES (?1, ?2, ?3, ?4, {now}) ON CONFLICT DO NOTHING"
            ),
            swap: format!(
                "UPDATE {records} SET value = ?3, stamp = ?4, written_ms = {now} \
                 WHERE cluster = ?1 AND key = ?2 AND stamp = ?5"
            ),
            delete: format!("DELETE FROM {records} WHERE cluster = ?1 AND key = ?2"),
            hint: format!(
                "INSERT INTO {hints} (cluster, counter) VALUES (?1, 1) \
                 ON CONFLICT DO UPDATE SET counter = counter + 1"
            ),
            hints: format!("SELECT counter FROM {hints} WHERE cluster = ?1"),
            one: format!("SELECT {columns} FROM {records} WHERE cluster = ?1 AND key = ?2"),
            below: format!(
                "SELECT {columns} FROM {records} WHERE cluster = ?1 AND key >= ?2 ORDER BY key"
            ),
        }
    }
}

impl Database {
    /// Does all of an exchange, or nothing, or can't tell. The flag says whether others should be
    /// woken.
    pub(crate) fn exchange(
        &self,
        cluster: &str,
        exchange: &Exchange,
    ) -> Result<(Reply, bool), Failure> {
        self.check().map_err(apart)?;
        let done = if exchange.writes.is_empty() {
            self.read_only(cluster, &exchange.reads)
        } else {
            self.read_write(cluster, exchange)
        }?;
        // Until here the files could be swapped unnoticed, or get another name. From here on
        // that is later than this exchange.
        match self.check() {
            Ok(()) => Ok(done),
            Err(error) if exchange.writes.is_empty() => Err(apart(error)),
            Err(error) => Err(apart(StoreError { kind: ErrorKind::Unknown, ..error })),
        }
    }

    /// How many changes of this cluster asked for a hint so far.
    pub(crate) fn hint_counter(&self, cluster: &str) -> rusqlite::Result<i64> {
        let mut statement = self.connection.prepare_cached(&self.statements.hints)?;
        let mut rows = statement.query([cluster])?;
        rows.next()?.map_or(Ok(0), |row| row.get(0))
    }

    fn read_only(&self, cluster: &str, reads: &[Read]) -> Result<(Reply, bool), Failure> {
        let answer = || {
            if reads.len() < 2 {
                return self.answer(cluster, reads);
            }
            // One snapshot for all reads costs less than one each.
            run(&self.connection, "BEGIN")?;
            let found = self.answer(cluster, reads);
            self.roll_back();
            found
        };
        let reads = answer().map_err(|error| self.failure(&error, During::Work))?;
        Ok((Reply { writes: Vec::new(), reads }, false))
    }

    fn read_write(&self, cluster: &str, exchange: &Exchange) -> Result<(Reply, bool), Failure> {
        let work = |error: rusqlite::Error| self.failure(&error, During::Work);
        run(&self.connection, "BEGIN IMMEDIATE").map_err(work)?;
        // The reads come before the commit: should one fail, nothing has been applied.
        let done = self
            .apply(cluster, &exchange.writes)
            .and_then(|(writes, hint)| Ok((writes, hint, self.answer(cluster, &exchange.reads)?)));
        let (writes, hint, reads) = match done {
            Ok(done) => done,
            Err(error) => {
                self.roll_back();
                return Err(work(error));
            }
        };
        match run(&self.connection, "COMMIT") {
            Ok(()) => Ok((Reply { writes, reads }, hint)),
            Err(error) => {
                self.roll_back();
                Err(self.failure(&error, During::Commit))
            }
        }
    }

    fn apply(&self, cluster: &str, writes: &[Write]) -> rusqlite::Result<(Vec<Outcome>, bool)> {
        let mut outcomes = Vec::with_capacity(writes.len());
        let mut hint = false;
        for write in writes {
            outcomes.push(match write {
                Write::Put(put) => {
                    let applied = self.put(cluster, put)?;
                    hint |= applied && put.hint;
                    if applied { Outcome::Applied(put.stamp.version()) } else { Outcome::Refused }
                }
                Write::Delete(key) => {
                    let mut statement = self.connection.prepare_cached(&self.statements.delete)?;
                    statement.execute([cluster, key.as_str()])?;
                    Outcome::Deleted
                }
            });
        }
        if hint {
            self.connection.prepare_cached(&self.statements.hint)?.execute([cluster])?;
        }
        Ok((outcomes, hint))
    }

    fn put(&self, cluster: &str, put: &Put) -> rusqlite::Result<bool> {
        let (key, value, stamp) = (put.key.as_str(), Value(&put.value), put.stamp.to_string());
        let changed = match &put.expect {
            Expect::Absent => self
                .connection
                .prepare_cached(&self.statements.create)?
                .execute(params![cluster, key, value, stamp])?,
            Expect::Version(version) => self
                .connection
                .prepare_cached(&self.statements.swap)?
                .execute(params![cluster, key, value, stamp, version.as_str()])?,
        };
        Ok(changed == 1)
    }

    fn answer(&self, cluster: &str, reads: &[Read]) -> rusqlite::Result<Vec<Found>> {
        reads
            .iter()
            .map(|read| match read {
                Read::Key { key, unless } => self.one(cluster, key, unless.as_ref()),
                Read::Prefix(prefix) => self.below(cluster, prefix).map(Found::Records),
            })
            .collect()
    }

    fn one(&self, cluster: &str, key: &Key, unless: Option<&Version>) -> rusqlite::Result<Found> {
        let mut statement = self.connection.prepare_cached(&self.statements.one)?;
        let mut rows = statement.query([cluster, key.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(Found::Absent) };
        // SQLite fetches a value when it is asked for, so this spares large ones.
        if unless.is_some_and(|version| row.get_ref(2).is_ok_and(|stamp| is(stamp, version))) {
            return Ok(Found::Unchanged);
        }
        Ok(Found::Record(record(row)?))
    }

    fn below(&self, cluster: &str, prefix: &Key) -> rusqlite::Result<Vec<Record>> {
        let mut statement = self.connection.prepare_cached(&self.statements.below)?;
        let mut rows = statement.query([cluster, prefix.as_str()])?;
        let (start, mut records) = (prefix.as_str().as_bytes(), Vec::new());
        // Rows come in key order, so the first that doesn't match ends the list.
        while let Some(row) = rows.next()? {
            if !row.get_ref(0)?.as_bytes().is_ok_and(|key| key.starts_with(start)) {
                break;
            }
            records.push(record(row)?);
        }
        Ok(records)
    }

    /// A failure to roll back needs no care: the connection is then still inside the transaction
    /// and is closed, which ends it.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            let _ = run(&self.connection, "ROLLBACK");
        }
    }

    fn failure(&self, error: &rusqlite::Error, during: During) -> Failure {
        Failure {
            error: translate(&self.paths.database, error, during),
            reconnect: !keeps_connection(error) || !self.connection.is_autocommit(),
        }
    }
}

/// Others may have other files: this connection is of no use any more.
fn apart(error: StoreError) -> Failure {
    Failure { error, reconnect: true }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// Text where it can be, so that a person sees JSON in the `sqlite3` shell.
struct Value<'a>(&'a [u8]);

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let is_text = !self.0.contains(&0) && std::str::from_utf8(self.0).is_ok();
        let value = if is_text { ValueRef::Text(self.0) } else { ValueRef::Blob(self.0) };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn is(stamp: ValueRef<'_>, version: &Version) -> bool {
    stamp.as_bytes().is_ok_and(|stamp| stamp == version.as_str().as_bytes())
}

/// Nothing that a person may have written into a row makes it unreadable here: what isn't a
/// record of ours is for the core to judge.
fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let age = row.get_ref(3)?.as_i64().ok();
    Ok(Record {
        key: Key::new(&text(row.get_ref(0)?)),
        value: bytes(row.get_ref(1)?),
        version: Version::new(&text(row.get_ref(2)?)),
        // A wall clock that was set back gives a negative age.
        age: age.map(|age| Duration::from_millis(u64::try_from(age).unwrap_or(0))),
    })
}

fn text(value: ValueRef<'_>) -> String {
    String::from_utf8_lossy(&bytes(value)).into_owned()
}

fn bytes(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => number.to_string().into_bytes(),
        ValueRef::Null => Vec::new(),
    }
}
