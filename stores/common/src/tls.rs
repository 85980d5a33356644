//! The files of an encrypted connection, and what rustls makes of them.

#[cfg(feature = "tls")]
mod config;
#[cfg(feature = "tls")]
mod pem;

use std::path::{Path, PathBuf};

use incumbent_core::store::StoreError;

#[cfg(feature = "tls")]
pub use config::{encrypt, provider};
#[cfg(feature = "tls")]
pub use pem::Pem;

use crate::url::Options;

/// What the parameters are called that name the files.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsNames {
    /// The authorities to trust.
    pub authorities: &'static str,
    /// The client's certificate.
    pub certificate: &'static str,
    /// Its key.
    pub key: &'static str,
}

impl TlsNames {
    /// Of most stores.
    pub const USUAL: &'static Self =
        &Self { authorities: "cafile", certificate: "certfile", key: "keyfile" };

    /// In MySQL's words.
    pub const MYSQL: &'static Self =
        &Self { authorities: "ssl-ca", certificate: "ssl-cert", key: "ssl-key" };

    /// In libpq's words.
    pub const LIBPQ: &'static Self =
        &Self { authorities: "sslrootcert", certificate: "sslcert", key: "sslkey" };
}

/// Whom to trust, and what to show to the other side. The files are read for each connection, so that
/// renewed certificates are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    names: &'static TlsNames,
    /// The authorities to trust; those of the machine by default.
    pub authorities: Option<PathBuf>,
    /// The client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// No files at all.
    #[must_use]
    pub fn none(names: &'static TlsNames) -> Self {
        Self { names, authorities: None, identity: None }
    }

    /// The files that these parameters name.
    ///
    /// # Errors
    ///
    /// Rejected if a certificate comes without its key.
    pub fn read(options: &Options, names: &'static TlsNames) -> Result<Self, StoreError> {
        Self::find(names, |name| options.file(name))
    }

    /// The files, wherever they are named.
    ///
    /// # Errors
    ///
    /// Rejected if a certificate comes without its key.
    pub fn find(
        names: &'static TlsNames,
        file: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<Self, StoreError> {
        let TlsNames { authorities, certificate, key } = names;
        let identity = match (file(certificate), file(key)) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(StoreError::rejected(format!(
                    "{certificate}= and {key}= belong together: give both or neither"
                )));
            }
        };
        Ok(Self { names, authorities: file(authorities), identity })
    }

    /// Whether there are none.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.authorities.is_none() && self.identity.is_none()
    }

    /// The files where the connection is encrypted. Where it isn't, there may be none.
    ///
    /// # Errors
    ///
    /// Rejected if there are some, with the scheme that encrypts; and as [`TlsFiles::read`].
    pub fn only_if(
        encrypted: bool,
        scheme: &str,
        options: &Options,
        names: &'static TlsNames,
    ) -> Result<Option<Self>, StoreError> {
        let TlsNames { authorities, certificate, key } = names;
        if encrypted {
            return Self::read(options, names).map(Some);
        }
        if [authorities, certificate, key].iter().all(|name| options.text(name).is_none()) {
            return Ok(None);
        }
        Err(StoreError::rejected(format!(
            "{authorities}=, {certificate}= and {key}= are for encrypted connections: write {scheme}"
        )))
    }

    /// Sees that all files can be read, for drivers whose own errors name no file.
    ///
    /// # Errors
    ///
    /// Rejected with the name of the one that can't.
    pub fn check(&self) -> Result<(), StoreError> {
        let identity = self.identity.as_ref();
        for (name, path) in [
            (self.names.authorities, self.authorities.as_ref()),
            (self.names.certificate, identity.map(|(certificate, _)| certificate)),
            (self.names.key, identity.map(|(_, key)| key)),
        ] {
            if let Some(path) = path {
                std::fs::File::open(path).map_err(|error| no_pem(name, path, &error))?;
            }
        }
        Ok(())
    }
}

/// The error for a file that isn't what it should be.
fn no_pem(name: &str, path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::rejected(format!(
        "{name}={}: {error}. Name a PEM file that this process may read",
        path.display()
    ))
}
