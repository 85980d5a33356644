//! What tables, channels and clusters are called in the database.

use incumbent_core::store::StoreError;
use incumbent_store_common::{check_name, cut};
use sha2::{Digest, Sha256};

/// PostgreSQL cuts longer names off.
const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 40;

/// A longer cluster name would not fit into an index.
const LONGEST_CLUSTER: usize = 512;

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
        check_name("schema", schema, LONGEST_NAME, "incumbent")?;
        check_name("prefix", prefix, LONGEST_PREFIX, "election_")?;
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
        let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("incumbent_{digits}")
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
    Ok(cut(cluster, LONGEST_CLUSTER, LONGEST_CLUSTER - 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        let names = Names::new("Select", "user").unwrap();
        assert_eq!(names.records, "\"Select\".\"userrecords\"");
        assert!(Names::new("a\"b", "user").is_err() && Names::new("public", "a\"b").is_err());
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
    fn clusters_are_stored_as_they_are_called() {
        assert_eq!(stored_cluster("plain").unwrap(), "plain");
        assert!(stored_cluster(&"é".repeat(1000)).unwrap().len() <= LONGEST_CLUSTER);
        assert!(stored_cluster("a\0b").is_err());
    }
}
