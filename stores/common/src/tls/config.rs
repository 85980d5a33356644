//! Encryption with rustls.

use std::sync::Arc;

use incumbent_core::store::StoreError;
use rustls::client::WantsClientCert;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Pem, TlsFiles, TlsNames};

/// The cryptography. Named, because a process may hold several providers and rustls then refuses to
/// choose.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl TlsFiles {
    /// Trusts the authorities, and whoever they vouch for by the name of the host.
    ///
    /// # Errors
    ///
    /// Rejected if a file isn't what it should be.
    pub fn config(&self) -> Result<ClientConfig, StoreError> {
        self.with_identity(builder()?.with_root_certificates(self.roots()?))
    }

    /// Trusts whom this verifier trusts.
    ///
    /// # Errors
    ///
    /// Rejected if a file isn't what it should be.
    pub fn config_with(
        &self,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<ClientConfig, StoreError> {
        let builder = builder()?.dangerous().with_custom_certificate_verifier(verifier);
        self.with_identity(builder)
    }

    /// The authorities that are named, or those of this machine, which may have none.
    ///
    /// # Errors
    ///
    /// Rejected if the file isn't what it should be.
    pub fn roots(&self) -> Result<RootCertStore, StoreError> {
        if let Some(path) = &self.authorities {
            return Pem::read(self.names.authorities, path)?.authorities();
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Ok(roots)
    }

    fn with_identity(
        &self,
        builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    ) -> Result<ClientConfig, StoreError> {
        let Some((certificate, key)) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = Pem::read(self.names.certificate, certificate)?.certificates()?;
        let key = Pem::read(self.names.key, key)?;
        builder.with_client_auth_cert(chain, key.key()?).map_err(|error| key.wrong(&error))
    }

    /// What to look at when the two sides don't trust each other.
    #[must_use]
    pub fn advice(&self) -> String {
        let TlsNames { authorities, certificate, key } = self.names;
        format!(
            "Check that the port speaks TLS, that {authorities}= names the authority that signed the \
             server's certificate, that the certificate is valid for the host in the URL, and that \
             {certificate}= and {key}= are given if the server asks for them"
        )
    }
}

/// Encrypts a connection to the server that messages name so.
///
/// # Errors
///
/// Rejected if the two sides don't trust each other or a file isn't what it should be, unavailable if
/// the connection broke.
pub async fn encrypt(
    files: &TlsFiles,
    server: &str,
    host: &str,
    protocols: &[&[u8]],
    tcp: TcpStream,
) -> Result<TlsStream<TcpStream>, StoreError> {
    let mut config = files.config()?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        StoreError::rejected(format!("{server}: no certificate could name the host {host:?}"))
    })?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, tcp);
    connecting.await.map_err(|error| {
        // A connection that merely broke may work next time.
        if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
            StoreError::rejected(format!("{server}: TLS: {error}. {}", files.advice()))
        } else {
            StoreError::unavailable(format!("{server}: TLS: {error}"))
        }
    })
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, StoreError> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::rejected(format!("TLS can't be used: {error}")))
}
