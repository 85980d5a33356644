//! Where a cluster's records are in Redis.

use std::fmt::Write;

use incumbent_core::store::StoreError;

const LONGEST_PREFIX: usize = 64;

/// The names of what belongs to a cluster. All have one hash tag, so that they share a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// A hash of values and stamps.
    pub(crate) records: String,
    /// A sorted set of keys.
    pub(crate) index: String,
    /// The channel for hints.
    pub(crate) channel: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str, database: i64, cluster: &str) -> Self {
        let tag = format!("{{{prefix}:{}}}", encoded(cluster));
        Self {
            records: format!("{tag}:records"),
            index: format!("{tag}:keys"),
            // Channels are common to all databases of a server, unlike keys.
            channel: format!("{tag}:hints:{database}"),
        }
    }
}

/// Says why a prefix can't be used.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), StoreError> {
    let plain = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte));
    if plain && !prefix.is_empty() && prefix.len() <= LONGEST_PREFIX {
        return Ok(());
    }
    Err(StoreError::rejected(format!(
        "prefix={prefix:?} can't start a key's name: use up to {LONGEST_PREFIX} letters, digits \
         and _ - . : /, such as prefix=app:election"
    )))
}

/// The cluster's name as part of a key. Any name is told apart from any other, none can end the
/// hash tag, and none looks as if it belonged to a longer prefix.
fn encoded(cluster: &str) -> String {
    let mut text = String::with_capacity(cluster.len());
    for byte in cluster.bytes() {
        if byte.is_ascii_alphanumeric() || b"_-./@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Keys, check_prefix};

    #[test]
    fn plain_names_stay_readable() {
        let keys = Keys::new("incumbent", 0, "billing");
        assert_eq!(keys.records, "{incumbent:billing}:records");
        assert_eq!(keys.index, "{incumbent:billing}:keys");
        assert_eq!(keys.channel, "{incumbent:billing}:hints:0");
    }

    #[test]
    fn hostile_names_stay_inside_their_tag() {
        let records = |prefix, cluster| Keys::new(prefix, 0, cluster).records;
        assert_eq!(records("p", "a}b{c"), "{p:a%7Db%7Bc}:records");
        assert_eq!(records("p", "é *?[x]\0\r\n"), "{p:%C3%A9%20%2A%3F%5Bx%5D%00%0D%0A}:records");
        assert_ne!(records("a", "b:c"), records("a:b", "c"));
        assert_ne!(records("p", "a%3A"), records("p", "a:"));
        assert_ne!(Keys::new("p", 1, "c").channel, Keys::new("p", 2, "c").channel);
    }

    #[test]
    fn prefixes_are_plain() {
        for fine in ["incumbent", "app:election", "a.b-c_d/e", "7"] {
            assert_eq!(check_prefix(fine), Ok(()));
        }
        let long = "x".repeat(65);
        for bad in ["", "{a}", "a b", "a*", "é", "a\n", "a\"", &long] {
            let error = check_prefix(bad).unwrap_err();
            assert!(error.message.contains("prefix=app:election"), "{error}");
        }
    }
}
