//! The key of a cluster, by which its nodes know each other's hints.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use incumbent_store_common::secret_file;
use sha2::Sha256;

/// The fewest bytes that a key may have.
const LEAST: usize = 16;
/// The most; more would only cost time.
const MOST: usize = 1024;

/// So much of the authentication code travels.
pub(crate) const CODE: usize = 16;

/// A secret that all nodes of a cluster share, by which they know each other's hints. It is never shown.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HintKey(Arc<[u8]>);

/// Why something is no key for hints. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HintKeyError(String);

impl HintKey {
    /// A key of these bytes: 16 to 1,024.
    ///
    /// # Errors
    /// If they are too few or too many.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, HintKeyError> {
        let bytes = bytes.as_ref();
        if (LEAST..=MOST).contains(&bytes.len()) {
            return Ok(Self(bytes.into()));
        }
        Err(HintKeyError(format!(
            "a key for hints has {LEAST} to {MOST} bytes, and this one {}: draw one with \
             `openssl rand -hex 32`",
            bytes.len()
        )))
    }

    /// The key in a file, without white space around it.
    ///
    /// # Errors
    /// If the file can't be read, or what it holds is no key.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, HintKeyError> {
        let path = path.as_ref();
        let text = secret_file(path).map_err(|error| {
            HintKeyError(format!(
                "the key for hints in {} can't be read: {error}. Name a file that this user can read",
                path.display()
            ))
        })?;
        Self::new(text.trim())
            .map_err(|HintKeyError(said)| HintKeyError(format!("{}: {said}", path.display())))
    }

    /// What shows that whoever sent this knows the key.
    pub(crate) fn code(&self, message: &[u8]) -> Option<[u8; CODE]> {
        let whole = self.mac(message)?.finalize().into_bytes();
        whole.first_chunk().copied()
    }

    /// Whether this is that, compared in constant time.
    pub(crate) fn is_code(&self, message: &[u8], code: &[u8; CODE]) -> bool {
        self.mac(message).is_some_and(|mac| mac.verify_truncated_left(code).is_ok())
    }

    fn mac(&self, message: &[u8]) -> Option<Hmac<Sha256>> {
        // Any length of key will do, so that this doesn't fail.
        Some(Hmac::<Sha256>::new_from_slice(&self.0).ok()?.chain_update(message))
    }
}

impl fmt::Debug for HintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HintKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_holds_for_one_message_and_one_key() {
        let key = HintKey::new(b"0123456789abcdef").unwrap();
        let other = HintKey::new(b"0123456789abcdeg").unwrap();
        let code = key.code(b"hello").unwrap();
        assert!(key.is_code(b"hello", &code));
        assert!(!key.is_code(b"hallo", &code) && !other.is_code(b"hello", &code));
    }

    #[test]
    fn a_key_is_not_shown_and_not_short() {
        let key = HintKey::new(b"0123456789abcdef").unwrap();
        assert_eq!(format!("{key:?}"), "HintKey(…)");
        let said = HintKey::new("hunter2").unwrap_err().to_string();
        assert!(said.contains("16 to 1024") && !said.contains("hunter2"), "{said}");
        let said = HintKey::from_file("/there/is/no/such/key").unwrap_err().to_string();
        assert!(said.contains("/there/is/no/such/key"), "{said}");
    }
}
