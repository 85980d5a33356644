//! The SQL of single statements. All that comes from outside stands there as hexadecimal digits.

use std::collections::BTreeMap;

use incumbent_core::store::{Expect, Key, Put, Read, Version, Write};

use crate::names::{Names, hexadecimal};
use crate::settings::WRITABLE;

/// Says whether the server is read-only.
pub(crate) const SERVER: &str = "SELECT CONCAT(@@global.read_only)";

/// So many keys are asked for in one statement: with more, servers begin to build tables of them.
const KEYS: usize = 500;

/// Writes the statements of one cluster.
pub(crate) struct Writer<'a> {
    records: &'a str,
    cluster: String,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(names: &'a Names, cluster: &str) -> Self {
        Self { records: &names.records, cluster: hexadecimal(cluster.as_bytes()) }
    }

    /// One compare-and-swap, or one delete. It changes one row if it applies, else none.
    pub(crate) fn write(&self, write: &Write) -> String {
        match write {
            Write::Put(put) => match &put.expect {
                Expect::Absent => self.create(put),
                Expect::Version(version) => self.swap(put, version),
            },
            Write::Delete(key) => format!(
                "DELETE FROM {} WHERE {} AND {WRITABLE}",
                self.records,
                self.place(&hexadecimal(key.as_str().as_bytes()))
            ),
        }
    }

    /// A stamp is never used twice, so a row that matches is also a row that changes.
    fn swap(&self, put: &Put, version: &Version) -> String {
        format!(
            "UPDATE {} SET value = {}, stamp = {}, written = UTC_TIMESTAMP(6) WHERE {} \
             AND stamp = {} AND {WRITABLE}",
            self.records,
            hexadecimal(&put.value),
            hexadecimal(put.stamp.to_string().as_bytes()),
            self.place(&hexadecimal(put.key.as_str().as_bytes())),
            hexadecimal(version.as_str().as_bytes())
        )
    }

    /// A plain INSERT would end the packet where there is a row, and INSERT IGNORE would cut off
    /// what is too long. This one leaves the row as it is and says that it changed none.
    fn create(&self, put: &Put) -> String {
        let Self { records, cluster } = self;
        format!(
            "INSERT INTO {records} (cluster, `key`, value, stamp, written) SELECT {cluster}, {}, \
             {}, {}, UTC_TIMESTAMP(6) FROM DUAL WHERE {WRITABLE} \
             ON DUPLICATE KEY UPDATE stamp = {records}.stamp",
            hexadecimal(put.key.as_str().as_bytes()),
            hexadecimal(&put.value),
            hexadecimal(put.stamp.to_string().as_bytes())
        )
    }

    /// The statements that find the rows of all keys that are asked for.
    pub(crate) fn keys(&self, reads: &[Read]) -> Vec<String> {
        let asked = asked(reads);
        let asked: Vec<_> = asked.into_iter().collect();
        asked.chunks(KEYS).map(|some| self.some_keys(some)).collect()
    }

    fn some_keys(&self, some: &[(&str, Option<&str>)]) -> String {
        let keys: Vec<_> = some.iter().map(|(key, _)| hexadecimal(key.as_bytes())).collect();
        let known: Vec<_> = some
            .iter()
            .filter_map(|(key, known)| {
                let known = hexadecimal(known.as_ref()?.as_bytes());
                Some(format!("({}, {known})", hexadecimal(key.as_bytes())))
            })
            .collect();
        let value = match known.as_slice() {
            [] => "value".to_owned(),
            // What the reader has already isn't sent.
            known => format!("IF((`key`, stamp) IN ({}), NULL, value)", known.join(", ")),
        };
        self.select(&value, &format!("`key` IN ({})", keys.join(", ")))
    }

    /// The statement that finds all rows below a prefix.
    pub(crate) fn prefix(&self, prefix: &Key) -> String {
        let low = prefix.as_str().as_bytes();
        let mut condition = format!("`key` >= {}", hexadecimal(low));
        if let Some(high) = after_all(low) {
            condition.push_str(&format!(" AND `key` < {}", hexadecimal(&high)));
        }
        self.select("value", &condition) + " ORDER BY `key`"
    }

    /// The statement that finds which of these rows are there.
    pub(crate) fn present(&self, keys: &[String]) -> String {
        let keys = keys.join(", ");
        format!(
            "SELECT `key` FROM {} WHERE cluster = {} AND `key` IN ({keys})",
            self.records, self.cluster
        )
    }

    /// A question's answer: key, value, stamp, age in microseconds.
    fn select(&self, value: &str, condition: &str) -> String {
        format!(
            "SELECT `key`, {value}, stamp, TIMESTAMPDIFF(MICROSECOND, written, UTC_TIMESTAMP(6)) \
             FROM {} WHERE cluster = {} AND {condition}",
            self.records, self.cluster
        )
    }

    fn place(&self, key: &str) -> String {
        format!("cluster = {} AND `key` = {key}", self.cluster)
    }
}

/// The keys that are asked for, each with the version that its readers have. Where two of them
/// have different ones the value is needed in any case.
fn asked(reads: &[Read]) -> BTreeMap<&str, Option<&str>> {
    let mut asked = BTreeMap::new();
    for read in reads {
        let Read::Key { key, unless } = read else { continue };
        let unless = unless.as_ref().map(Version::as_str);
        asked
            .entry(key.as_str())
            .and_modify(|known| {
                if *known != unless {
                    *known = None;
                }
            })
            .or_insert(unless);
    }
    asked
}

/// The least bytes that are greater than all that start with these, if there are any.
fn after_all(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use incumbent_core::store::Stamp;

    #[test]
    fn a_prefix_ends_before_the_next() {
        assert_eq!(after_all(b"lease/").as_deref(), Some(&b"lease0"[..]));
        assert_eq!(after_all(&[b'a', 255, 255]).as_deref(), Some(&b"b"[..]));
        assert_eq!(after_all(&[255]), None);
        assert_eq!(after_all(b""), None);
    }

    #[test]
    fn nothing_from_outside_stands_in_a_statement_as_it_is() {
        let names = Names::new("incumbent_").unwrap();
        let evil = "'; DROP TABLE x; -- \\ ` \u{0}";
        let writer = Writer::new(&names, evil);
        let put = |expect| {
            Write::Put(Put {
                key: Key::new(evil),
                expect,
                value: evil.as_bytes().to_vec(),
                stamp: Stamp { writer: 1, attempt: 1 },
                hint: true,
                durable: true,
            })
        };
        let key = || Read::Key { key: Key::new(evil), unless: Some(Version::new(evil)) };
        let mut statements = writer.keys(&[key()]);
        statements.push(writer.prefix(&Key::new(evil)));
        statements.push(writer.write(&Write::Delete(Key::new(evil))));
        statements.push(writer.write(&put(Expect::Absent)));
        statements.push(writer.write(&put(Expect::Version(Version::new(evil)))));
        for statement in statements {
            assert!(!statement.contains(';') && !statement.contains("DROP"), "{statement}");
            assert!(!statement.contains('\\') && !statement.contains('\0'), "{statement}");
        }
    }

    #[test]
    fn a_key_asked_for_twice_with_two_versions_is_sent() {
        let read = |unless: Option<&str>| Read::Key {
            key: Key::new("k"),
            unless: unless.map(Version::new),
        };
        assert_eq!(asked(&[read(Some("1")), read(Some("1"))])["k"], Some("1"));
        assert_eq!(asked(&[read(Some("1")), read(Some("2"))])["k"], None);
        assert_eq!(asked(&[read(Some("1")), read(None)])["k"], None);
    }
}
