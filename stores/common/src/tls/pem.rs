//! Certificates and keys in files.

use std::fmt;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use incumbent_core::store::StoreError;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
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
            .map_err(|error| self.wrong(&error))?;
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
        PrivateKeyDer::from_pem_slice(&self.content).map_err(|error| self.wrong(&error))
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

#[cfg(unix)]
fn is_open_to_others(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o007 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Metadata) -> bool {
    false
}
