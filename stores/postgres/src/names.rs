//! What tables, channels and clusters are called in the database.

use std::fmt::Write;

use incumbent_core::store::StoreError;
use sha2::{Digest, Sha256};

/// PostgreSQL cuts longer names off.
const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 40;

/// A longer cluster name would not fit into an index.
const LONGEST_CLUSTER: usize = 512;
const CUT_MARK: &str = "…sha256:";

/// The objects of one store, quoted and ready for SQL text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    schema: String,
    prefix: String,
    pub(crate) records: String,
    pub(crate) meta: String,
}

impl Names {
    /// Checks both names, since they become part of SQL text.
    pub(crate) fn new(schema: &str, prefix: &str) -> Result<Self, StoreError> {
        check("schema", schema, LONGEST_NAME, "schema=incumbent")?;
        check("prefix", prefix, LONGEST_PREFIX, "prefix=election_")?;
        let names = Self {
            schema: schema.to_owned(),
            prefix: prefix.to_owned(),
            records: String::new(),
            meta: String::new(),
        };
        Ok(Self { records: names.object("records"), meta: names.object("meta"), ..names })
    }

    /// The schema, quoted.
    pub(crate) fn schema(&self) -> String {
        quoted(&self.schema)
    }

    pub(crate) fn plain_schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn is_public(&self) -> bool {
        self.schema == "public"
    }

    /// A table, view or function by its name after the prefix.
    pub(crate) fn object(&self, name: &str) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&format!("{}{name}", self.prefix)))
    }

    /// The channel on which changes of a cluster are told. It depends on nothing but the names,
    /// so every process derives the same.
    pub(crate) fn channel(&self, cluster: &str) -> String {
        let mut hash = Sha256::new();
        for part in [&self.schema, &self.prefix, cluster] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        format!("incumbent_{}", hexadecimal(digest.iter().take(16)))
    }
}

/// A name as SQL takes it, whatever it contains.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A cluster's name as it stands in its rows: itself unless it is very long.
pub(crate) fn stored_cluster(cluster: &str) -> Result<String, StoreError> {
    if cluster.contains('\0') {
        return Err(StoreError::rejected(format!(
            "cluster {cluster:?}: PostgreSQL can't store a NUL character; choose another name"
        )));
    }
    if cluster.len() <= LONGEST_CLUSTER && !cluster.contains(CUT_MARK) {
        return Ok(cluster.to_owned());
    }
    let mut start = String::new();
    for letter in cluster.chars() {
        if start.len() + letter.len_utf8() > LONGEST_CLUSTER - 100 {
            break;
        }
        start.push(letter);
    }
    Ok(format!("{start}{CUT_MARK}{}", hexadecimal(Sha256::digest(cluster.as_bytes()).iter())))
}

fn hexadecimal<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes.fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn check(what: &str, name: &str, longest: usize, example: &str) -> Result<(), StoreError> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if plain && starts && name.len() <= longest {
        return Ok(());
    }
    Err(StoreError::rejected(format!(
        "{what}={name:?} can't be used as a name: use up to {longest} letters, digits and \
         underscores, not beginning with a digit, such as {example}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        let long = "x".repeat(64);
        for name in ["", "1a", "a b", "a\"b", "a;b", "a'b", "a.b", "é", "a\0", &long] {
            let error = Names::new(name, "incumbent_").expect_err(name);
            assert!(error.message.contains("schema="), "{error}");
            let error = Names::new("public", name).expect_err(name);
            assert!(error.message.contains("prefix="), "{error}");
        }
    }

    #[test]
    fn names_are_quoted() {
        let names = Names::new("Select", "user").unwrap();
        assert_eq!(names.records, "\"Select\".\"userrecords\"");
        assert_eq!(quoted("a\"; DROP"), "\"a\"\"; DROP\"");
    }

    #[test]
    fn channels_are_short_plain_and_apart() {
        let one = Names::new("public", "a").unwrap();
        let two = Names::new("publica", "b").unwrap();
        let long = "\"'".repeat(5000);
        for cluster in ["", "c", &long] {
            let channel = one.channel(cluster);
            assert!(channel.len() <= LONGEST_NAME);
            assert!(channel.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
            assert_ne!(channel, two.channel(cluster));
        }
        assert_ne!(one.channel("c"), one.channel("d"));
        assert_eq!(one.channel("c"), one.channel("c"));
    }

    #[test]
    fn long_clusters_are_cut_and_stay_apart() {
        let one = "é".repeat(1000);
        let two = format!("{one}x");
        let (one, two) = (stored_cluster(&one).unwrap(), stored_cluster(&two).unwrap());
        assert_ne!(one, two);
        assert!(one.len() <= LONGEST_CLUSTER);
        // A name that looks like a cut one is another cluster.
        assert_ne!(stored_cluster(&one).unwrap(), one);
        assert_eq!(stored_cluster("plain").unwrap(), "plain");
        assert!(stored_cluster("a\0b").is_err());
    }
}
