//! Where records and hints are among etcd's keys.
//!
//! | what | where |
//! | --- | --- |
//! | a record | `{prefix}/{cluster}/{key}` |
//! | a hint | `{prefix}/{cluster}~hint/{slot}` |
//!
//! In a cluster's name every byte but ASCII letters, digits, `_`, `-` and `.` is written as `=`
//! and two hexadecimal digits, so that no name reaches into another cluster or among the hints.

use incumbent_core::store::Key;

/// Where the records and hints of one cluster are.
pub(crate) struct Space {
    records: String,
    hints: String,
}

/// A key, or all from it up to `end`.
pub(crate) struct Span {
    pub(crate) key: Vec<u8>,
    pub(crate) end: Vec<u8>,
}

impl Space {
    pub(crate) fn new(prefix: &str, cluster: &str) -> Self {
        let base = format!("{prefix}/{}", escaped(cluster));
        Self { records: format!("{base}/"), hints: format!("{base}~hint/") }
    }

    pub(crate) fn record(&self, key: &Key) -> Vec<u8> {
        format!("{}{key}", self.records).into_bytes()
    }

    /// All records whose key starts with this.
    pub(crate) fn below(&self, prefix: &Key) -> Span {
        below(self.record(prefix))
    }

    /// etcd refuses a transaction that puts one key twice, so each hinted write of an exchange
    /// bumps a hint of its own.
    pub(crate) fn hint(&self, slot: usize) -> Vec<u8> {
        format!("{}{slot}", self.hints).into_bytes()
    }

    pub(crate) fn hints(&self) -> Span {
        below(self.hints.clone().into_bytes())
    }

    /// The key of a record, given etcd's; `None` for what incumbent never wrote.
    pub(crate) fn key(&self, raw: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(raw).ok()?;
        text.strip_prefix(&self.records).map(Key::new)
    }
}

/// All that starts with these bytes.
pub(crate) fn below(key: Vec<u8>) -> Span {
    let mut end = key.clone();
    // The first key after all of them: the last byte plus one. Text has no byte 255.
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            break;
        }
    }
    Span { key, end }
}

fn escaped(cluster: &str) -> String {
    let mut text = String::with_capacity(cluster.len());
    for byte in cluster.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("={byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_can_be_read_with_etcdctl() {
        let space = Space::new("/incumbent", "billing");
        let key = Key::new("lease/scheduler");
        assert_eq!(space.record(&key), b"/incumbent/billing/lease/scheduler");
        assert_eq!(space.hint(3), b"/incumbent/billing~hint/3");
        assert_eq!(space.key(b"/incumbent/billing/lease/scheduler"), Some(key));
        assert_eq!(space.key(b"/incumbent/other/lease/scheduler"), None);
        assert_eq!(space.key(b"/incumbent/billing/\xff"), None);
    }

    #[test]
    fn no_cluster_reaches_into_another() {
        let names =
            ["a", "a/b", "a~hint", "a=2F", "", "/", "..", ".", "é", "e\u{301}", "A", "a ", "\0"];
        let spans: Vec<Span> = names
            .iter()
            .flat_map(|name| {
                let space = Space::new("/p", name);
                [space.below(&Key::new("")), space.hints()]
            })
            .collect();
        for (place, one) in spans.iter().enumerate() {
            for other in spans.iter().skip(place + 1) {
                let apart = one.end <= other.key || other.end <= one.key;
                assert!(apart, "{:?} and {:?} overlap", one.key, other.key);
            }
        }
    }

    #[test]
    fn a_span_ends_after_all_that_starts_so() {
        assert_eq!(below(b"/a/".to_vec()).end, b"/a0");
        assert_eq!(below(vec![b'a', 255]).end, b"b");
        // To etcd an empty end beside a key would mean that key alone, and 0 means no end; text
        // never comes to that.
        assert_eq!(below(vec![255]).end, b"");
    }
}
