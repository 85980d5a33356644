//! Which subject a record has in the bucket's stream.
//!
//! `$KV.<bucket>.<cluster>.<kind>.<name>`: the first `/` of a key becomes a `.`, so that the
//! server can list one kind alone. All other characters of a key are legal in a subject as they
//! are; cluster names may hold anything and are escaped into one token.

use std::fmt::Write as _;

use incumbent_core::store::{Key, StoreError};
use sha2::{Digest as _, Sha256};

const LONGEST_BUCKET: usize = 64;

/// The longest token that a cluster's name becomes, in bytes.
const LONGEST_CLUSTER: usize = 200;

/// What follows the kind for a key that ends after its first `/`: two tokens, where all others
/// have one.
const NAMELESS: &str = "-.-";

/// The subjects of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subjects {
    /// What all its records start with, with the dot at the end.
    start: String,
    /// Where its changes are told.
    pub(crate) hint: String,
}

impl Subjects {
    pub(crate) fn new(bucket: &str, cluster: &str) -> Self {
        let token = token(cluster);
        Self { start: format!("$KV.{bucket}.{token}."), hint: hint(bucket, &token) }
    }

    /// Where this record is.
    pub(crate) fn subject(&self, key: &Key) -> Result<String, StoreError> {
        let text = key.as_str();
        if text.is_empty() || !text.bytes().all(is_legal) {
            return Err(StoreError::rejected(format!(
                "the key {text:?} can't be kept in NATS: use ASCII letters, digits, _ - / and ="
            )));
        }
        Ok(match text.split_once('/') {
            Some(("", _)) | None => format!("{}{text}", self.start),
            Some((kind, "")) => format!("{}{kind}.{NAMELESS}", self.start),
            Some((kind, name)) => format!("{}{kind}.{name}", self.start),
        })
    }

    /// The key of the record there, if it is one of this cluster.
    pub(crate) fn key(&self, subject: &str) -> Option<Key> {
        let rest = subject.strip_prefix(&self.start)?;
        Some(match rest.split_once('.') {
            None => Key::new(rest),
            Some((kind, NAMELESS)) => Key::new(&format!("{kind}/")),
            Some((kind, name)) => Key::new(&format!("{kind}/{name}")),
        })
    }

    /// A filter that lets through all records whose key starts with this, and perhaps others.
    pub(crate) fn filter(&self, prefix: &Key) -> String {
        match prefix.as_str().split_once('/') {
            Some((kind, _)) if !kind.is_empty() && kind.bytes().all(is_legal) => {
                format!("{}{kind}.>", self.start)
            }
            _ => format!("{}>", self.start),
        }
    }
}

/// The stream behind a bucket.
pub(crate) fn stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}

/// All subjects of the stream.
pub(crate) fn all(bucket: &str) -> String {
    format!("$KV.{bucket}.>")
}

/// Where changes are told: a plain subject that no stream keeps.
pub(crate) fn hint(bucket: &str, token: &str) -> String {
    format!("incumbent.hint.{bucket}.{token}")
}

pub(crate) fn check_bucket(name: &str) -> Result<(), StoreError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > LONGEST_BUCKET || !name.bytes().all(legal) {
        return Err(StoreError::rejected(format!(
            "bucket={name:?} can't be the name of a bucket: use up to {LONGEST_BUCKET} ASCII letters, \
             digits, _ and -"
        )));
    }
    Ok(())
}

fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'=')
}

/// Any text as one token of a subject. Different texts have different tokens, but for hashes that
/// collide.
fn token(cluster: &str) -> String {
    let mut token = String::new();
    for byte in cluster.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            token.push(char::from(byte));
        } else {
            let _ = write!(token, "={byte:02X}");
        }
    }
    if token.is_empty() {
        // No other name becomes a lone `=`.
        token.push('=');
    }
    if token.len() > LONGEST_CLUSTER {
        token.truncate(LONGEST_CLUSTER - 34);
        // `h` is no hexadecimal digit, so that no escaped name has this in it. The cut may leave
        // half an escape; nothing is decoded from here.
        token.push_str("=h");
        for byte in Sha256::digest(cluster.as_bytes()).iter().take(16) {
            let _ = write!(token, "{byte:02x}");
        }
    }
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_their_subjects() {
        let subjects = Subjects::new("b", "app");
        let pairs = [
            ("member/01ab", "$KV.b.app.member.01ab"),
            ("view", "$KV.b.app.view"),
            ("lease/a/b", "$KV.b.app.lease.a/b"),
            ("lease//a", "$KV.b.app.lease./a"),
            ("lease/", "$KV.b.app.lease.-.-"),
            ("lease/-", "$KV.b.app.lease.-"),
            ("/a", "$KV.b.app./a"),
            ("/", "$KV.b.app./"),
            ("a=2E", "$KV.b.app.a=2E"),
        ];
        for (key, subject) in pairs {
            assert_eq!(subjects.subject(&Key::new(key)).unwrap(), subject);
            assert_eq!(subjects.key(subject), Some(Key::new(key)));
        }
        assert_eq!(subjects.key("$KV.b.other.view"), None);
    }

    #[test]
    fn keys_that_mean_something_to_the_server_are_rejected() {
        let subjects = Subjects::new("b", "app");
        for key in ["", "a.b", "lease/*", "lease/>", "a b", "a\r\nPUB x 0", "é"] {
            assert!(subjects.subject(&Key::new(key)).is_err(), "{key:?}");
        }
    }

    #[test]
    fn filters_name_one_kind_where_they_can() {
        let subjects = Subjects::new("b", "app");
        assert_eq!(subjects.filter(&Key::new("member/0")), "$KV.b.app.member.>");
        assert_eq!(subjects.filter(&Key::new("member")), "$KV.b.app.>");
        assert_eq!(subjects.filter(&Key::new("")), "$KV.b.app.>");
        assert_eq!(subjects.filter(&Key::new("*/x")), "$KV.b.app.>");
        assert_eq!(subjects.filter(&Key::new("/x")), "$KV.b.app.>");
    }

    #[test]
    fn clusters_are_one_token_whatever_their_names() {
        assert_eq!(token("billing-1"), "billing-1");
        assert_eq!(token("a.b *>"), "a=2Eb=20=2A=3E");
        assert_eq!(token(""), "=");
        assert_eq!(token("="), "=3D");
        let long = token(&"é".repeat(2000));
        assert_eq!(long.len(), LONGEST_CLUSTER);
        assert_ne!(long, token(&"é".repeat(2001)));
    }

    #[test]
    fn buckets_have_plain_names() {
        check_bucket("incumbent_2-x").unwrap();
        for name in ["", "a.b", "a b", "*", "é", &"x".repeat(65)] {
            assert!(check_bucket(name).is_err(), "{name:?}");
        }
    }
}
