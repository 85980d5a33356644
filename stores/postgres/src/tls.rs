//! Encryption with rustls, and libpq's five ways of trusting the other side.

use std::sync::Arc;

use incumbent_core::store::StoreError;
use incumbent_store_common::provider;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::options::{TlsMode, TlsOptions};

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
    Ok(MakeRustlsConnect::new(options.files.config_with(verifier(options)?)?))
}

fn verifier(options: &TlsOptions) -> Result<Arc<dyn ServerCertVerifier>, StoreError> {
    let provider = provider();
    let trust = match options.mode {
        TlsMode::Disable | TlsMode::Prefer => Trust::Anybody,
        TlsMode::Require if !options.rooted => Trust::Anybody,
        // As libpq does it: a root given with sslmode=require is used.
        TlsMode::Require | TlsMode::VerifyCa => Trust::Authority(web(options, &provider)?),
        TlsMode::VerifyFull => return Ok(web(options, &provider)?),
    };
    Ok(Arc::new(Lenient { trust, provider }))
}

fn web(
    options: &TlsOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, StoreError> {
    let roots = Arc::new(options.files.roots()?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
    verifier.map_err(|error| {
        StoreError::rejected(format!(
            "no authority to trust was found ({error}): give another sslrootcert="
        ))
    })
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
