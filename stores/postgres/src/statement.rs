//! The SQL of an exchange: all of it in one statement, which is one round trip and, without any
//! BEGIN, one transaction.
//!
//! Reads see the records as they were before the statement's own writes, which the contract
//! leaves open. Each write compares the stamp; under READ COMMITTED an update that had to wait
//! for another compares again with what that one left.

use tokio_postgres::types::Type;

use crate::names::Names;

/// How the writes of a statement are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Writes {
    /// There are none.
    None,
    /// One swap: every beat, and most takes and releases.
    Swap,
    /// One creation.
    Create,
    /// Any number of any kind, each key once.
    Batch,
    /// The same, but a row that somebody has locked is left out at once.
    BatchUnlocked,
}

/// What decides the text of a statement; statements of one shape differ in parameters alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub(crate) writes: Writes,
    pub(crate) hints: bool,
    pub(crate) keys: bool,
    pub(crate) prefixes: bool,
    /// Whether settings have to travel with the statement, since the session isn't ours.
    pub(crate) pooled: bool,
}

/// A row of the reply says what it is about.
pub(crate) const ABOUT_SERVER: i32 = 0;
pub(crate) const ABOUT_WRITE: i32 = 1;
pub(crate) const ABOUT_KEY: i32 = 2;
pub(crate) const ABOUT_PREFIX: i32 = 3;
const ABOUT_HINT: i32 = 4;

/// The first row of each reply.
const SERVER: &str = "pg_is_in_recovery()::text";

impl Shape {
    /// The text and the types of its parameters, in the order in which
    /// [`crate::exchange`] gives them.
    pub(crate) fn text(self, names: &Names) -> (String, Vec<Type>) {
        let mut types = vec![Type::TEXT];
        let mut next = |kind: Type| {
            types.push(kind);
            format!("${}", types.len())
        };
        let records = &names.records;
        let lock =
            if self.pooled && self.writes != Writes::None { Some(next(Type::TEXT)) } else { None };
        let gate = lock.map(|lock| gate(&lock));
        let with = match self.writes {
            Writes::None => String::new(),
            Writes::Swap => {
                let [key, expected, value, stamp] = [(); 4].map(|()| next(Type::TEXT));
                let gate = gate.map_or(String::new(), |gate| format!(" AND {gate}"));
                format!(
                    "WITH applied AS (UPDATE {records} SET value = {value}, stamp = {stamp}, \
                     written = now() WHERE cluster = $1 AND key = {key} AND stamp = {expected}\
                     {gate} RETURNING key) "
                )
            }
            Writes::Create => {
                let [key, value, stamp] = [(); 3].map(|()| next(Type::TEXT));
                let gate = gate.map_or(String::new(), |gate| format!(" WHERE {gate}"));
                format!(
                    "WITH applied AS (INSERT INTO {records} (cluster, key, value, stamp, written) \
                     SELECT $1, {key}, {value}, {stamp}, now(){gate} ON CONFLICT DO NOTHING \
                     RETURNING key) "
                )
            }
            Writes::Batch | Writes::BatchUnlocked => {
                let [key, expected, value, stamp] = [(); 4].map(|()| next(Type::TEXT_ARRAY));
                let hint = next(Type::BOOL_ARRAY);
                let source = format!("unnest({key}, {expected}, {value}, {stamp}, {hint})");
                batch(records, &source, gate.as_deref(), self.writes == Writes::BatchUnlocked)
            }
        };
        let mut parts = vec![format!(
            "SELECT {ABOUT_SERVER} AS about, NULL::int8 AS place, NULL::text AS key, {SERVER} AS \
             value, NULL::text AS stamp, now() AS written"
        )];
        if self.writes != Writes::None {
            parts.push(format!("SELECT {ABOUT_WRITE}, NULL, key, NULL, NULL, NULL FROM applied"));
        }
        if self.hints {
            parts.push(notify(self.writes, &next(Type::TEXT)));
        }
        if self.keys {
            let [keys, known] = [(); 2].map(|()| next(Type::TEXT_ARRAY));
            parts.push(format!(
                "SELECT {ABOUT_KEY}, q.place, r.key, CASE WHEN q.known IS DISTINCT FROM r.stamp \
                 THEN r.value END, r.stamp, r.written FROM unnest({keys}, {known}) WITH \
                 ORDINALITY AS q(key, known, place) JOIN {records} r ON r.cluster = $1 AND \
                 r.key = q.key"
            ));
        }
        if self.prefixes {
            let [low, high] = [(); 2].map(|()| next(Type::TEXT_ARRAY));
            parts.push(format!(
                "SELECT {ABOUT_PREFIX}, q.place, r.key, r.value, r.stamp, r.written FROM \
                 unnest({low}, {high}) WITH ORDINALITY AS q(low, high, place) JOIN {records} r \
                 ON r.cluster = $1 AND r.key >= q.low AND r.key < q.high"
            ));
        }
        (with + &parts.join(" UNION ALL "), types)
    }
}

/// Settings for the rest of the transaction, which is this statement. As a condition that names
/// no column it is looked at before any row is.
fn gate(lock_timeout: &str) -> String {
    format!(
        "(SELECT set_config('lock_timeout', {lock_timeout}, true)) IS NOT NULL AND \
         (SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
         WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)) IS NOT NULL"
    )
}

/// Rows are locked in the order of their keys and before anything is inserted, so that two
/// batches don't wait for each other.
fn batch(records: &str, source: &str, gate: Option<&str>, unlocked: bool) -> String {
    let gate = gate.map_or(String::new(), |gate| format!(" WHERE {gate}"));
    let skip = if unlocked { " SKIP LOCKED" } else { "" };
    format!(
        "WITH w AS MATERIALIZED (SELECT * FROM {source} AS w(key, expected, value, stamp, hint)\
         {gate}), \
         locked AS MATERIALIZED (SELECT r.key FROM {records} r JOIN w ON r.key = w.key \
         WHERE r.cluster = $1 AND (w.value IS NULL OR r.stamp = w.expected) \
         ORDER BY r.key FOR UPDATE OF r{skip}), \
         swapped AS (UPDATE {records} r SET value = w.value, stamp = w.stamp, written = now() \
         FROM w JOIN locked l ON l.key = w.key WHERE r.cluster = $1 AND r.key = w.key \
         AND r.stamp = w.expected AND w.value IS NOT NULL RETURNING r.key), \
         deleted AS (DELETE FROM {records} r USING w JOIN locked l ON l.key = w.key \
         WHERE r.cluster = $1 AND r.key = w.key AND w.value IS NULL RETURNING r.key), \
         created AS (INSERT INTO {records} (cluster, key, value, stamp, written) \
         SELECT $1, w.key, w.value, w.stamp, now() FROM w WHERE w.expected IS NULL \
         AND w.value IS NOT NULL AND (SELECT count(*) FROM locked) >= 0 ORDER BY w.key \
         ON CONFLICT DO NOTHING RETURNING key), \
         applied AS (SELECT key FROM swapped UNION ALL SELECT key FROM deleted \
         UNION ALL SELECT key FROM created) "
    )
}

/// Told in the same transaction, so nobody is woken before the change can be seen, nor by one
/// that was taken back.
fn notify(writes: Writes, channel: &str) -> String {
    let which = match writes {
        Writes::Batch | Writes::BatchUnlocked => {
            "SELECT 1 FROM applied a JOIN w ON w.key = a.key WHERE w.hint LIMIT 1"
        }
        Writes::None | Writes::Swap | Writes::Create => "SELECT 1 FROM applied LIMIT 1",
    };
    format!(
        "SELECT {ABOUT_HINT}, NULL, NULL, pg_notify({channel}, '')::text, NULL, NULL FROM \
         ({which}) AS hinted"
    )
}
