//! Encryption with rustls, and libpq's five ways of trusting the other side.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use incumbent_core::store::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::options::{TlsMode, TlsOptions, TlsRoot};

impl TlsMode {
    /// What the driver has to know: whether to encrypt.
    pub(crate) fn driver(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// Reads the certificates. Done for each connection, so that renewed ones are found.
pub(crate) fn connector(options: &TlsOptions) -> Result<MakeRustlsConnect, StoreError> {
    // Named here, because a process may hold several providers and rustls then refuses to choose.
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::rejected(format!("TLS can't be used: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier(options, &provider)?);
    let config = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates("sslcert", certificate)?;
            let private = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("sslkey", key, &error))?;
            builder
                .with_client_auth_cert(chain, private)
                .map_err(|error| unreadable("sslkey", key, &error))?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn verifier(
    options: &TlsOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, StoreError> {
    let trust = match (options.mode, &options.root) {
        (TlsMode::Disable | TlsMode::Prefer, _) | (TlsMode::Require, None) => Trust::Anybody,
        // As libpq does it: a root given with sslmode=require is used.
        (TlsMode::Require | TlsMode::VerifyCa, root) => Trust::Authority(web(root, provider)?),
        (TlsMode::VerifyFull, root) => return Ok(web(root, provider)?),
    };
    Ok(Arc::new(Lenient { trust, provider: Arc::clone(provider) }))
}

fn web(
    root: &Option<TlsRoot>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, StoreError> {
    let mut roots = RootCertStore::empty();
    match root {
        Some(TlsRoot::File(path)) => {
            for certificate in certificates("sslrootcert", path)? {
                roots.add(certificate).map_err(|error| unreadable("sslrootcert", path, &error))?;
            }
        }
        Some(TlsRoot::System) | None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| {
            StoreError::rejected(format!(
                "no authority to trust was found ({error}): give another sslrootcert="
            ))
        })
}

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let fail = |error: &dyn Error| unreadable(what, path, error);
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| fail(&error))?;
    if certificates.is_empty() {
        return Err(fail(&std::io::Error::other("there is no certificate in it")));
    }
    Ok(certificates)
}

fn unreadable(what: &str, path: &Path, error: &dyn Error) -> StoreError {
    StoreError::rejected(format!(
        "{what}={}: {error}. Name a PEM file that this process may read",
        path.display()
    ))
}

/// Whom to trust where the server's name doesn't matter.
#[derive(Debug)]
enum Trust {
    /// `prefer` and `require` encrypt and trust whoever answers, as they do in libpq.
    Anybody,
    /// `verify-ca` asks for a certificate of a trusted authority, whatever its name.
    Authority(Arc<WebPkiServerVerifier>),
}

#[derive(Debug)]
struct Lenient {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Trust::Authority(verifier) = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last, so all else was found right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
