//! Reads what the script answers.

use std::time::Duration;

use incumbent_core::store::{Exchange, Found, Key, Outcome, Read, Record, Reply, Version, Write};
use redis::Value;

/// The reply to an exchange, or nothing if the answer isn't the script's.
pub(crate) fn reply(exchange: &Exchange, answer: Value) -> Option<Reply> {
    let [now, outcomes, answers] = array(answer)?.try_into().ok()?;
    let now: i64 = text(now)?.parse().ok()?;
    let (outcomes, answers) = (bytes(outcomes)?, array(answers)?);
    if outcomes.len() != exchange.writes.len() || answers.len() != exchange.reads.len() {
        return None;
    }
    let writes = exchange.writes.iter().zip(outcomes).map(|(write, letter)| outcome(write, letter));
    let reads = exchange.reads.iter().zip(answers).map(|(read, answer)| match read {
        Read::Key { key, .. } => one(key, answer, now),
        Read::Prefix(_) => below(answer, now).map(Found::Records),
    });
    Some(Reply { writes: writes.collect::<Option<_>>()?, reads: reads.collect::<Option<_>>()? })
}

fn outcome(write: &Write, letter: u8) -> Option<Outcome> {
    match (write, letter) {
        (Write::Put(put), b'a') => Some(Outcome::Applied(put.stamp.version())),
        (Write::Put(_), b'r') => Some(Outcome::Refused),
        (Write::Delete(_), b'd') => Some(Outcome::Deleted),
        (Write::Put(_) | Write::Delete(_), _) => None,
    }
}

fn one(key: &Key, answer: Value, now: i64) -> Option<Found> {
    match answer {
        Value::Int(0) => Some(Found::Absent),
        Value::Int(1) => Some(Found::Unchanged),
        answer => {
            let [value, stamp] = array(answer)?.try_into().ok()?;
            record(key.clone(), value, stamp, now).map(Found::Record)
        }
    }
}

/// Key, value and stamp of each record, one after the other.
fn below(answer: Value, now: i64) -> Option<Vec<Record>> {
    let answer = array(answer)?;
    let mut records = Vec::with_capacity(answer.len() / 3);
    let mut rest = answer.into_iter();
    while let Some(key) = rest.next() {
        let (value, stamp) = (rest.next()?, rest.next()?);
        records.push(record(Key::new(&text(key)?), value, stamp, now)?);
    }
    Some(records)
}

fn record(key: Key, value: Value, stamp: Value, now: i64) -> Option<Record> {
    let stamp = text(stamp)?;
    let (version, written) = stamp.split_once(' ').unwrap_or((&stamp, ""));
    // A stamp that a person changed may have no time, and a wall clock that was set back gives a
    // negative age.
    let age = written.parse().ok().map(|written| now.saturating_sub(written));
    Some(Record {
        key,
        value: bytes(value)?,
        version: Version::new(version),
        age: age.map(|age| Duration::from_millis(u64::try_from(age).unwrap_or(0))),
    })
}

fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    bytes(value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::{Exchange, Found, Key, Read, Write};
    use redis::Value;

    use super::reply;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn asked() -> Exchange {
        let read = Read::Key { key: Key::new("a"), unless: None };
        Exchange { writes: vec![Write::Delete(Key::new("b"))], reads: vec![read] }
    }

    #[test]
    fn answers_of_another_shape_are_nonsense_and_not_replies() {
        let fine = vec![bulk("5"), bulk("d"), Value::Array(vec![Value::Int(0)])];
        let read = reply(&asked(), Value::Array(fine)).unwrap();
        assert_eq!(read.reads, [Found::Absent]);
        let record = |stamp| Value::Array(vec![bulk("{}"), bulk(stamp)]);
        for bad in [
            Value::Nil,
            Value::Okay,
            Value::Array(vec![]),
            Value::Array(vec![bulk("x"), bulk("d"), Value::Array(vec![Value::Int(0)])]),
            Value::Array(vec![bulk("5"), bulk("a"), Value::Array(vec![Value::Int(0)])]),
            Value::Array(vec![bulk("5"), bulk("dd"), Value::Array(vec![Value::Int(0)])]),
            Value::Array(vec![bulk("5"), bulk("d"), Value::Array(vec![])]),
            Value::Array(vec![bulk("5"), bulk("d"), Value::Array(vec![Value::Int(2)])]),
            Value::Array(vec![bulk("5"), bulk("d"), Value::Array(vec![Value::Nil])]),
        ] {
            assert_eq!(reply(&asked(), bad.clone()), None, "{bad:?}");
        }
        for (stamp, age) in [("s.1 2", Some(3)), ("s.1 9", Some(0)), ("s.1 x", None), ("s.1", None)]
        {
            let answer = vec![bulk("5"), bulk("d"), Value::Array(vec![record(stamp)])];
            let read = reply(&asked(), Value::Array(answer)).unwrap();
            let [Found::Record(record)] = read.reads.as_slice() else { panic!("{read:?}") };
            assert_eq!(record.version.as_str(), "s.1");
            assert_eq!(record.age.map(|age| age.as_millis()), age);
        }
    }
}
