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
    /// A few of any kind, each key once.
    Few,
    /// The same, and any number.
    Batch,
    /// The same, but a row that somebody has locked is left out at once.
    BatchUnlocked,
}

/// What decides the text of a statement; statements of one shape differ in parameters alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub(crate) writes: Writes,
    pub(crate) hints: bool,
    /// Whether the answer waits until the writes survive a crash.
    pub(crate) durable: bool,
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
/// Of a row that was there to be deleted.
pub(crate) const ABOUT_DELETE: i32 = 5;

/// The first row of each reply.
const SERVER: &str = "pg_is_in_recovery()::text";

/// Gives each parameter its number.
struct Numbers {
    types: Vec<Type>,
}

impl Numbers {
    fn next(&mut self, kind: Type) -> String {
        self.types.push(kind);
        format!("${}", self.types.len())
    }

    fn several<const COUNT: usize>(&mut self, kind: &Type) -> [String; COUNT] {
        [(); COUNT].map(|()| self.next(kind.clone()))
    }
}

impl Shape {
    /// Whether a plan may be kept for the next statement of this shape. The best plan for a batch
    /// depends on its size.
    pub(crate) fn keeps_plan(self) -> bool {
        match self.writes {
            Writes::None | Writes::Swap | Writes::Create | Writes::Few => !self.pooled,
            Writes::Batch | Writes::BatchUnlocked => false,
        }
    }

    /// The text and the types of its parameters, in the order in which
    /// [`crate::exchange`] gives them.
    pub(crate) fn text(self, names: &Names) -> (String, Vec<Type>) {
        let mut numbers = Numbers { types: vec![Type::TEXT] };
        let with = self.with(&names.records, &mut numbers);
        let parts = self.parts(&names.records, &mut numbers);
        (with + &parts.join(" UNION ALL "), numbers.types)
    }

    /// The writes; what they applied is afterwards in `applied`.
    fn with(self, records: &str, numbers: &mut Numbers) -> String {
        if self.writes == Writes::None {
            return String::new();
        }
        let gate = self.gate(numbers);
        let gated =
            |word: &str| gate.as_ref().map_or(String::new(), |gate| format!(" {word} {gate}"));
        match self.writes {
            Writes::None => String::new(),
            Writes::Swap => {
                let [key, expected, value, stamp] = numbers.several(&Type::TEXT);
                let gate = gated("AND");
                format!(
                    "WITH applied AS (UPDATE {records} SET value = {value}, stamp = {stamp}, \
                     written = now() WHERE cluster = $1 AND key = {key} AND stamp = {expected}\
                     {gate} RETURNING key) "
                )
            }
            Writes::Create => {
                let [key, value, stamp] = numbers.several(&Type::TEXT);
                let gate = gated("WHERE");
                format!(
                    "WITH applied AS (INSERT INTO {records} (cluster, key, value, stamp, written) \
                     SELECT $1, {key}, {value}, {stamp}, now(){gate} ON CONFLICT DO NOTHING \
                     RETURNING key) "
                )
            }
            Writes::Few | Writes::Batch | Writes::BatchUnlocked => {
                let [key, expected, value, stamp] = numbers.several(&Type::TEXT_ARRAY);
                let source = format!("unnest({key}, {expected}, {value}, {stamp})");
                let unlocked = self.writes == Writes::BatchUnlocked;
                batch(records, &source, &gated("WHERE"), unlocked)
            }
        }
    }

    /// Settings for the rest of the transaction, which is this statement. As a condition that names
    /// no column it is looked at before any row is.
    fn gate(self, numbers: &mut Numbers) -> Option<String> {
        let lock = self.pooled.then(|| setting("lock_timeout", &numbers.next(Type::TEXT)));
        let commit = if self.durable { DURABLE } else { FLEETING };
        let told = self.pooled || !self.durable;
        let commit = told.then(|| setting("synchronous_commit", commit));
        let settings: Vec<String> = lock.into_iter().chain(commit).collect();
        (!settings.is_empty()).then(|| settings.join(" AND "))
    }

    /// The rows of the reply. Each question is looked up by itself (LIMIT and OFFSET keep the
    /// server from turning that around), because a plan that is kept may be older than the rows.
    fn parts(self, records: &str, numbers: &mut Numbers) -> Vec<String> {
        let mut parts = vec![format!(
            "SELECT {ABOUT_SERVER} AS about, NULL::int8 AS place, NULL::text AS key, {SERVER} AS \
             value, NULL::text AS stamp, now() AS written"
        )];
        if self.writes != Writes::None {
            parts.push(format!("SELECT {ABOUT_WRITE}, NULL, key, NULL, NULL, NULL FROM applied"));
        }
        if matches!(self.writes, Writes::Few | Writes::Batch | Writes::BatchUnlocked) {
            parts.push(format!(
                "SELECT {ABOUT_DELETE}, NULL, key, NULL, NULL, NULL FROM locked WHERE value IS NULL"
            ));
        }
        if self.hints {
            parts.push(notify(&numbers.next(Type::TEXT)));
        }
        if self.keys {
            let [keys, known] = numbers.several(&Type::TEXT_ARRAY);
            parts.push(format!(
                "SELECT {ABOUT_KEY}, q.place, r.key, CASE WHEN q.known IS DISTINCT FROM r.stamp \
                 THEN r.value END, r.stamp, r.written FROM unnest({keys}, {known}) WITH \
                 ORDINALITY AS q(key, known, place) CROSS JOIN LATERAL (SELECT key, value, stamp, \
                 written FROM {records} WHERE cluster = $1 AND key = q.key LIMIT 1) r"
            ));
        }
        if self.prefixes {
            let [low, high] = numbers.several(&Type::TEXT_ARRAY);
            parts.push(format!(
                "SELECT {ABOUT_PREFIX}, q.place, r.key, r.value, r.stamp, r.written FROM \
                 unnest({low}, {high}) WITH ORDINALITY AS q(low, high, place) CROSS JOIN LATERAL \
                 (SELECT key, value, stamp, written FROM {records} WHERE cluster = $1 AND \
                 key >= q.low AND key < q.high OFFSET 0) r"
            ));
        }
        parts
    }
}

/// The commits of what has to be durable wait as long as the server would let them, and at least
/// until it is on the disk. The rest waits for nothing: a later commit that waits brings what came
/// before it to the disk, and to the standbys, as well.
const DURABLE: &str = "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE \
                       current_setting('synchronous_commit') END";
const FLEETING: &str = "'off'";

fn setting(name: &str, value: &str) -> String {
    format!("(SELECT set_config('{name}', {value}, true)) IS NOT NULL")
}

/// Rows are locked in the order of their keys and before anything is inserted, so that two
/// batches don't wait for each other. What is locked was compared after the wait.
///
/// Each row is looked up by itself, in a way that leaves the server no choice. A join of the table
/// with the batch would be done each with each where the server takes the table for small, as it
/// does when the table has grown since it last counted; 10,000 leases then take a minute.
/// For the same reason a swap is an insert that is bound to meet its row.
///
/// What is not waited for is left out: a row that somebody has locked, and a lease whose term some
/// transaction has asserted (`assert.sql` says how).
fn batch(records: &str, source: &str, gate: &str, unlocked: bool) -> String {
    let skip = if unlocked { " SKIP LOCKED" } else { "" };
    let free = if unlocked {
        " AND (r.key < 'lease/' OR r.key >= 'lease0' OR pg_try_advisory_xact_lock(\
         hashtextextended(r.cluster || '/' || r.key, r.tableoid::bigint)))"
    } else {
        ""
    };
    let insert = format!("INSERT INTO {records} (cluster, key, value, stamp, written) SELECT $1,");
    format!(
        "WITH w AS MATERIALIZED (SELECT * FROM {source} AS w(key, expected, value, stamp){gate}), \
         locked AS MATERIALIZED (SELECT w.key, w.value, w.stamp, found.spot FROM (SELECT * FROM w \
         WHERE expected IS NOT NULL OR value IS NULL ORDER BY key COLLATE \"C\") w \
         CROSS JOIN LATERAL (SELECT r.ctid AS spot FROM {records} r WHERE r.cluster = $1 \
         AND r.key = w.key AND (w.value IS NULL OR r.stamp = w.expected){free} LIMIT 1 \
         FOR UPDATE{skip}) found), \
         swapped AS ({insert} key, value, stamp, now() FROM locked WHERE value IS NOT NULL \
         ON CONFLICT (cluster, key) DO UPDATE SET value = EXCLUDED.value, \
         stamp = EXCLUDED.stamp, written = EXCLUDED.written RETURNING key), \
         deleted AS (DELETE FROM {records} WHERE ctid = ANY (ARRAY(SELECT spot FROM locked \
         WHERE value IS NULL)) RETURNING key), \
         created AS ({insert} key, value, stamp, now() FROM w WHERE expected IS NULL \
         AND value IS NOT NULL AND (SELECT count(*) FROM locked) >= 0 ORDER BY key COLLATE \"C\" \
         ON CONFLICT DO NOTHING RETURNING key), \
         applied AS (SELECT key FROM swapped UNION ALL SELECT key FROM deleted \
         UNION ALL SELECT key FROM created) "
    )
}

/// Told in the same transaction, so nobody is woken before the change can be seen, nor by one
/// that was taken back. Of a batch with hints among it, anything that was applied wakes.
fn notify(channel: &str) -> String {
    format!(
        "SELECT {ABOUT_HINT}, NULL, NULL, pg_notify({channel}, '')::text, NULL, NULL FROM \
         (SELECT 1 FROM applied LIMIT 1) AS hinted"
    )
}
