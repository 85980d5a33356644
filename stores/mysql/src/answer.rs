//! Turns rows into what was found.

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent_core::store::{Found, Key, Read, Record, Version};

use crate::connection::{Row, bytes, text};

/// Why rows can't be what was asked for.
pub(crate) type Senseless = &'static str;

/// What was found for each question: `keys` are the rows of all keys, `prefixes` the rows of each
/// prefix in their order.
pub(crate) fn found(
    reads: &[Read],
    keys: &[Row],
    prefixes: Vec<Vec<Row>>,
) -> Result<Vec<Found>, Senseless> {
    let mut rows: BTreeMap<&str, &Row> = BTreeMap::new();
    for row in keys {
        rows.insert(text(row, 0).ok_or("a row without its key")?, row);
    }
    let mut prefixes = prefixes.into_iter();
    reads
        .iter()
        .map(|read| match read {
            Read::Key { key, unless } => match rows.get(key.as_str()) {
                Some(row) => one(row, unless.as_ref()),
                None => Ok(Found::Absent),
            },
            Read::Prefix(_) => {
                let rows = prefixes.next().ok_or("a prefix without an answer")?;
                let records: Result<_, _> = rows.iter().map(record).collect();
                Ok(Found::Records(records?))
            }
        })
        .collect()
}

fn one(row: &Row, unless: Option<&Version>) -> Result<Found, Senseless> {
    let stamp = text(row, 2).ok_or("a record without its stamp")?;
    if unless.is_some_and(|known| known.as_str() == stamp) {
        return Ok(Found::Unchanged);
    }
    Ok(Found::Record(record(row)?))
}

fn record(row: &Row) -> Result<Record, Senseless> {
    // A clock that was set back would give a negative age.
    let age = text(row, 3).and_then(|age| age.parse::<i64>().ok()).unwrap_or(0);
    Ok(Record {
        key: Key::new(text(row, 0).ok_or("a record without its key")?),
        value: bytes(row, 1).ok_or("a record without its value")?.to_vec(),
        version: Version::new(text(row, 2).ok_or("a record without its stamp")?),
        age: Some(Duration::from_micros(u64::try_from(age).unwrap_or(0))),
    })
}
