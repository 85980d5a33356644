//! Encryption with rustls.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use incumbent_core::store::StoreError;
use incumbent_store_common::Endpoint;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::options::TlsOptions;

/// Encrypts a connection. The files are read each time, so that renewed certificates are found.
pub(crate) async fn encrypt(
    options: &TlsOptions,
    endpoint: &Endpoint,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, StoreError> {
    let connector = TlsConnector::from(Arc::new(config(options)?));
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| {
        StoreError::rejected(format!(
            "{endpoint}: {error}. Name a host that a certificate can name"
        ))
    })?;
    connector.connect(name, stream).await.map_err(|error| {
        let rustls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match rustls {
            // The two sides don't trust each other, and waiting won't change that.
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_)) => {
                StoreError::rejected(format!(
                    "TLS with etcd at {endpoint}: {error}. See that cafile= names the authority \
                     of the server's certificate, that the certificate names this host, and that \
                     certfile= and keyfile= are given if the server asks for them"
                ))
            }
            _ => StoreError::unavailable(format!("TLS with etcd at {endpoint}: {error}")),
        }
    })
}

fn config(options: &TlsOptions) -> Result<ClientConfig, StoreError> {
    // Named here, because a process may hold several providers and rustls then refuses to choose.
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::rejected(format!("TLS can't be used: {error}")))?
        .with_root_certificates(roots(options)?);
    let mut config = match &options.identity {
        Some(identity) => {
            let chain = certificates("certfile", &identity.certificate)?;
            let fail = |error: &dyn Error| unreadable("keyfile", &identity.key, error);
            let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(|error| fail(&error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| fail(&error))?
        }
        None => builder.with_no_client_auth(),
    };
    // Without this the server takes the connection for plain HTTP.
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn roots(options: &TlsOptions) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    match &options.ca {
        Some(path) => {
            for certificate in certificates("cafile", path)? {
                roots.add(certificate).map_err(|error| unreadable("cafile", path, &error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(StoreError::rejected(
                    "this machine trusts no authority: name one with cafile=",
                ));
            }
        }
    }
    Ok(roots)
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
