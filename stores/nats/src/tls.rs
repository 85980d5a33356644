//! Encryption with rustls.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use incumbent_core::store::StoreError;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::options::TlsFiles;

/// Reads the certificates. Done for each connection, so that renewed ones are found.
pub(crate) fn config(files: &TlsFiles) -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    match &files.authorities {
        Some(path) => {
            for certificate in certificates("cafile", path)? {
                roots.add(certificate).map_err(|error| unreadable("cafile", path, &error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    // Named here, because a process may hold several providers and rustls then refuses to choose.
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::rejected(format!("TLS can't be used: {error}")))?
        .with_root_certificates(roots);
    let (Some(certificate), Some(key)) = (&files.certificate, &files.key) else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates("certfile", certificate)?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("keyfile", key, &error))?;
    let config = builder.with_client_auth_cert(chain, private);
    config.map_err(|error| unreadable("keyfile", key, &error))
}

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(what, path, &error))?;
    if certificates.is_empty() {
        let none = std::io::Error::other("there is no certificate in it");
        return Err(unreadable(what, path, &none));
    }
    Ok(certificates)
}

fn unreadable(what: &str, path: &Path, error: &dyn Error) -> StoreError {
    StoreError::rejected(format!(
        "{what}={}: {error}. Name a PEM file that this process may read",
        path.display()
    ))
}
