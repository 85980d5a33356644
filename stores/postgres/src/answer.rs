//! Turns rows into a reply.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use incumbent_core::store::{Found, Key, Read, Record, Version};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::statement::{ABOUT_DELETE, ABOUT_KEY, ABOUT_PREFIX, ABOUT_SERVER, ABOUT_WRITE};

/// What one statement brought.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Whether the server is a standby: what it says may be stale.
    pub(crate) standby: bool,
    /// Whether rows that were locked were left out.
    pub(crate) skipped: bool,
    /// The keys whose writes were applied.
    pub(crate) applied: BTreeSet<String>,
    /// The keys that were there to be deleted.
    pub(crate) doomed: BTreeSet<String>,
    /// What was found, in the order of the questions.
    pub(crate) found: Vec<Found>,
}

type Unreadable = Box<dyn Error + Send + Sync>;

impl Answer {
    /// Reads the rows that came back for these questions.
    pub(crate) fn read(rows: &[Row], reads: &[Read]) -> Result<Self, Unreadable> {
        let mut answer = Self::default();
        let mut now = None;
        let questions = Questions::of(reads);
        answer.found = reads
            .iter()
            .map(|read| match read {
                Read::Key { .. } => Found::Absent,
                Read::Prefix(_) => Found::Records(Vec::new()),
            })
            .collect();
        for row in rows {
            match row.try_get::<_, i32>(0)? {
                ABOUT_SERVER => {
                    answer.standby = row.try_get::<_, &str>(3)? != "false";
                    now = Some(row.try_get::<_, Microseconds>(5)?);
                }
                ABOUT_WRITE => {
                    answer.applied.insert(row.try_get(2)?);
                }
                ABOUT_DELETE => {
                    answer.doomed.insert(row.try_get(2)?);
                }
                ABOUT_KEY => {
                    let place = questions.place(&questions.keys, row)?;
                    answer.set(place, one(row, now)?);
                }
                ABOUT_PREFIX => {
                    let place = questions.place(&questions.prefixes, row)?;
                    if let Some(Found::Records(records)) = answer.found.get_mut(place) {
                        records.push(record(row, now)?);
                    }
                }
                _ => {}
            }
        }
        if now.is_none() {
            return Err("the reply has no first row".into());
        }
        for found in &mut answer.found {
            if let Found::Records(records) = found {
                records.sort_by(|one, two| one.key.cmp(&two.key));
            }
        }
        Ok(answer)
    }

    fn set(&mut self, place: usize, found: Found) {
        if let Some(slot) = self.found.get_mut(place) {
            *slot = found;
        }
    }
}

/// Where the questions of each sort stand among all.
struct Questions {
    keys: Vec<usize>,
    prefixes: Vec<usize>,
}

impl Questions {
    fn of(reads: &[Read]) -> Self {
        let mut questions = Self { keys: Vec::new(), prefixes: Vec::new() };
        for (place, read) in reads.iter().enumerate() {
            match read {
                Read::Key { .. } => questions.keys.push(place),
                Read::Prefix(_) => questions.prefixes.push(place),
            }
        }
        questions
    }

    fn place(&self, among: &[usize], row: &Row) -> Result<usize, Unreadable> {
        let ordinal = row.try_get::<_, i64>(1)?;
        let place = usize::try_from(ordinal - 1).ok().and_then(|place| among.get(place));
        place.copied().ok_or_else(|| "the reply answers what wasn't asked".into())
    }
}

fn one(row: &Row, now: Option<Microseconds>) -> Result<Found, Unreadable> {
    // The server leaves the value out if the reader has it.
    if row.try_get::<_, Option<&str>>(3)?.is_none() {
        return Ok(Found::Unchanged);
    }
    Ok(Found::Record(record(row, now)?))
}

fn record(row: &Row, now: Option<Microseconds>) -> Result<Record, Unreadable> {
    let written = row.try_get::<_, Microseconds>(5)?;
    // A clock that was set back would give a negative age.
    let age = now.and_then(|now| u64::try_from(now.0.saturating_sub(written.0)).ok());
    Ok(Record {
        key: Key::new(row.try_get(2)?),
        value: row.try_get::<_, &str>(3)?.as_bytes().to_vec(),
        version: Version::new(row.try_get(4)?),
        age: Some(Duration::from_micros(age.unwrap_or(0))),
    })
}

/// A time of the server's clock, as it is sent. Nothing that a person may have written there,
/// infinity included, makes it unreadable.
#[derive(Clone, Copy, Debug)]
struct Microseconds(i64);

impl<'a> FromSql<'a> for Microseconds {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Unreadable> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}
