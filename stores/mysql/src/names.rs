//! What tables and clusters are called in the database.

use std::fmt::Write;

use incumbent_core::store::StoreError;
use sha2::{Digest, Sha256};

/// MySQL takes 64; the longest suffix is `records`.
const LONGEST_PREFIX: usize = 40;

/// What the column takes. Longer names are cut and end in a hash.
const LONGEST_CLUSTER: usize = 255;
const CUT_MARK: &str = "…sha256:";

/// The tables and views of one store, quoted and ready for SQL text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
    pub(crate) records: String,
    pub(crate) meta: String,
}

impl Names {
    /// Checks the prefix, since it becomes part of SQL text.
    pub(crate) fn new(prefix: &str) -> Result<Self, StoreError> {
        let plain = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let starts = prefix.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !plain || !starts || prefix.len() > LONGEST_PREFIX {
            return Err(StoreError::rejected(format!(
                "prefix={prefix:?} can't begin the names of tables: use up to {LONGEST_PREFIX} \
                 letters, digits and underscores, not beginning with a digit, such as \
                 prefix=election_"
            )));
        }
        let object = |name| format!("`{prefix}{name}`");
        Ok(Self { prefix: prefix.to_owned(), records: object("records"), meta: object("meta") })
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A table or view by its name after the prefix, quoted.
    pub(crate) fn object(&self, name: &str) -> String {
        format!("`{}{name}`", self.prefix)
    }
}

/// A name as SQL takes it, whatever it contains.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Bytes as SQL takes them. Nothing in them can mean anything else.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 3);
    text.push_str("x'");
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text.push('\'');
    text
}

/// A cluster's name as it stands in its rows: itself unless it is very long.
pub(crate) fn stored_cluster(cluster: &str) -> String {
    if cluster.len() <= LONGEST_CLUSTER && !cluster.contains(CUT_MARK) {
        return cluster.to_owned();
    }
    let mut name = String::new();
    for letter in cluster.chars() {
        if name.len() + letter.len_utf8() > LONGEST_CLUSTER - CUT_MARK.len() - 64 {
            break;
        }
        name.push(letter);
    }
    name.push_str(CUT_MARK);
    for byte in Sha256::digest(cluster.as_bytes()) {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_prefixes_are_refused() {
        let long = "x".repeat(41);
        for prefix in ["", "1a", "a b", "a`b", "a;b", "a'b", "a.b", "é", "a\0", "a-b", &long] {
            let error = Names::new(prefix).expect_err(prefix);
            assert!(error.message.contains("prefix="), "{error}");
        }
        assert_eq!(Names::new("Select").unwrap().records, "`Selectrecords`");
    }

    #[test]
    fn names_and_bytes_are_quoted() {
        assert_eq!(quoted("a`; DROP"), "`a``; DROP`");
        assert_eq!(hexadecimal(b""), "x''");
        assert_eq!(hexadecimal(&[0, 255, 16]), "x'00ff10'");
    }

    #[test]
    fn long_clusters_are_cut_and_stay_apart() {
        let one = "é".repeat(1000);
        let two = format!("{one}x");
        let (one, two) = (stored_cluster(&one), stored_cluster(&two));
        assert_ne!(one, two);
        assert!(one.len() <= LONGEST_CLUSTER && one.len() > 200, "{}", one.len());
        // A name that looks like a cut one is another cluster.
        assert_ne!(stored_cluster(&one), one);
        assert_eq!(stored_cluster("plain"), "plain");
    }
}
