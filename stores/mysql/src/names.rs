//! What tables and clusters are called in the database.

use incumbent_core::store::StoreError;
use incumbent_store_common::{check_name, cut};

/// MySQL takes 64; the longest suffix is `records`.
const LONGEST_PREFIX: usize = 40;

/// What the column takes. Longer names are cut and end in a hash.
const LONGEST_CLUSTER: usize = 255;

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
        check_name("prefix", prefix, LONGEST_PREFIX, "election_")?;
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
    cut(cluster, LONGEST_CLUSTER, 181)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_are_quoted() {
        assert_eq!(Names::new("Select").unwrap().records, "`Selectrecords`");
        assert!(Names::new("a`b").is_err());
        assert_eq!(quoted("a`; DROP"), "`a``; DROP`");
        assert_eq!(hexadecimal(b""), "x''");
        assert_eq!(hexadecimal(&[0, 255, 16]), "x'00ff10'");
    }
}
