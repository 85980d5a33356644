//! Certificates and keys in files.

use std::fmt;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use incumbent_core::store::StoreError;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::no_pem;
use crate::secret::regular_file;

/// What a file may have at most, in bytes: all authorities of a machine have less.
const LARGEST: u64 = 4 << 20;

/// A PEM file as it was read, with the parameter or flag that named it. Never shows what is in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    name: &'static str,
    path: PathBuf,
    content: Vec<u8>,
    open_to_others: bool,
}

impl Pem {
    /// Reads the file that this parameter named.
    ///
    /// # Errors
    ///
    /// Rejected if it can't be read, isn't a regular file, or is too large.
    pub fn read(name: &'static str, path: &Path) -> Result<Self, StoreError> {
        let (content, metadata) =
            regular_file(path, LARGEST).map_err(|error| no_pem(name, path, &error))?;
        let open_to_others = is_open_to_others(&metadata);
        Ok(Self { name, path: path.to_owned(), content, open_to_others })
    }

    /// Whether users of this machine who are neither its owner nor in its group can use it.
    #[must_use]
    pub fn is_open_to_others(&self) -> bool {
        self.open_to_others
    }

    /// The certificates in it, of which there is at least one.
    ///
    /// # Errors
    ///
    /// Rejected if it isn't PEM or has none.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, StoreError> {
        let certificates = CertificateDer::pem_slice_iter(&self.content)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.wrong(&told(&error)))?;
        if certificates.is_empty() {
            return Err(self.wrong(&"there is no certificate in it"));
        }
        Ok(certificates)
    }

    /// The same, as authorities to trust.
    ///
    /// # Errors
    ///
    /// Rejected if it isn't PEM, has none, or one can't be an authority.
    pub fn authorities(&self) -> Result<RootCertStore, StoreError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates()? {
            roots.add(certificate).map_err(|error| self.wrong(&error))?;
        }
        Ok(roots)
    }

    /// The first private key in it.
    ///
    /// # Errors
    ///
    /// Rejected if it isn't PEM or has none.
    pub fn key(&self) -> Result<PrivateKeyDer<'static>, StoreError> {
        PrivateKeyDer::from_pem_slice(&self.content).map_err(|error| self.wrong(&told(&error)))
    }

    /// The error for a file in which something is wrong.
    #[must_use]
    pub fn wrong(&self, error: &dyn fmt::Display) -> StoreError {
        no_pem(self.name, &self.path, error)
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").field("name", &self.name).field("path", &self.path).finish()
    }
}

/// What is wrong with PEM, in words of our own: the error's have what is in the file (O58).
fn told(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => {
            "a section in it has no end; perhaps it has lost its line breaks"
        }
        pem::Error::IllegalSectionStart { .. } => {
            "a section in it begins as none does; perhaps it has lost its line breaks"
        }
        pem::Error::Base64Decode(_) => "what is between its markers is not base64",
        pem::Error::NoItemsFound => "there is no such section in it",
        pem::Error::SectionTooLarge => "a section in it is too large",
        _ => "it can't be read as PEM",
    }
}

#[cfg(unix)]
fn is_open_to_others(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o007 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O58: a key that has lost its line breaks is one line, which the error of the library quotes.
    #[test]
    fn what_is_wrong_with_a_key_is_told_without_the_key() {
        let secret = "c2VjcmV0IHNlY3JldCBzZWNyZXQ=";
        let whole = format!("-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n");
        let bytes = format!("{:?}", secret.as_bytes());
        let bytes = bytes.trim_matches(['[', ']']).to_owned();
        for broken in [
            whole.replace('\n', ""),
            whole.replace('\n', "\\n"),
            whole.replace("-----\n", "\n"),
            whole.replace("c2Vj", "c2V!"),
            whole.replace("-----END PRIVATE KEY-----", ""),
            secret.to_owned(),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("key");
            std::fs::write(&path, &broken).unwrap();
            let pem = Pem::read("key", &path).unwrap();
            for error in [pem.key().unwrap_err(), pem.certificates().unwrap_err()] {
                let said = error.to_string();
                assert!(!said.contains(&secret[8..]), "{said}");
                assert!(!said.contains(&bytes), "{said}");
                assert!(said.len() < path.display().to_string().len() + 300, "{said}");
            }
        }
    }
}
