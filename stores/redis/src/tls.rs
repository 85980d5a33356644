//! Encrypted connections.

#[cfg(feature = "tls")]
pub(crate) use with::{refusal, wrap};
#[cfg(not(feature = "tls"))]
pub(crate) use without::{refusal, wrap};

#[cfg(feature = "tls")]
mod with {
    use std::error::Error;
    use std::path::Path;
    use std::sync::Arc;

    use incumbent_core::store::{ErrorKind, StoreError};
    use redis::RedisError;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;

    use crate::connection::Stream;
    use crate::error::unreachable;
    use crate::options::{RedisOptions, TlsOptions};

    /// Shakes hands over a new connection. Files are read each time, so that renewed certificates
    /// are found without a restart.
    pub(crate) async fn wrap(
        options: &RedisOptions,
        how: &TlsOptions,
        tcp: TcpStream,
    ) -> Result<Stream, StoreError> {
        let name = ServerName::try_from(options.host.clone())
            .map_err(|_| rejected(options, "the host is no name that a certificate could have"))?;
        let connector = TlsConnector::from(Arc::new(config(options, how)?));
        match connector.connect(name, tcp).await {
            Ok(stream) => Ok(Box::pin(stream)),
            Err(error) if mentions_tls(&error) => Err(advice(options, &error)),
            Err(error) => Err(unreachable(options, &error)),
        }
    }

    /// Says more about a connection that broke after the handshake, as it does with TLS 1.3 when
    /// the server wants a client's certificate. If the server was gone before its word could be
    /// read, the cause may be another.
    pub(crate) fn refusal(options: &RedisOptions, error: &RedisError) -> Option<StoreError> {
        options.tls.as_ref()?;
        let refusal = advice(options, &error);
        let kind = if error.to_string().contains("alert") {
            ErrorKind::Rejected
        } else {
            ErrorKind::Unavailable
        };
        (!error.is_timeout()).then_some(StoreError { kind, ..refusal })
    }

    fn config(options: &RedisOptions, how: &TlsOptions) -> Result<ClientConfig, StoreError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| rejected(options, &error.to_string()))?
            .with_root_certificates(authorities(options, how)?);
        match (&how.certificate, &how.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(options, "certfile", certificate)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    rejected(options, &format!("keyfile={}: {error}", key.display()))
                })?;
                let config = builder.with_client_auth_cert(chain, key);
                config
                    .map_err(|error| rejected(options, &format!("certfile= and keyfile=: {error}")))
            }
            _ => Ok(builder.with_no_client_auth()),
        }
    }

    fn authorities(options: &RedisOptions, how: &TlsOptions) -> Result<RootCertStore, StoreError> {
        let mut roots = RootCertStore::empty();
        let found = match &how.authorities {
            Some(path) => certificates(options, "cafile", path)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        roots.add_parsable_certificates(found);
        if roots.is_empty() {
            return Err(rejected(
                options,
                "there is no authority to trust: name the one that signed the server's \
                 certificate with cafile=",
            ));
        }
        Ok(roots)
    }

    fn certificates(
        options: &RedisOptions,
        name: &str,
        path: &Path,
    ) -> Result<Vec<CertificateDer<'static>>, StoreError> {
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<_, _>>);
        read.map_err(|error| {
            rejected(options, &format!("{name}={}: {error}. Give a PEM file", path.display()))
        })
    }

    /// Whether the handshake itself failed. A connection that merely broke may work next time.
    fn mentions_tls(error: &std::io::Error) -> bool {
        let inner: Option<&(dyn Error + Send + Sync)> = error.get_ref();
        inner.is_some_and(|inner| inner.is::<rustls::Error>())
    }

    fn advice(options: &RedisOptions, error: &dyn std::fmt::Display) -> StoreError {
        rejected(
            options,
            &format!(
                "{error}. See that the port speaks TLS, that cafile= names the authority that \
                 signed the server's certificate, that the certificate is valid for the host in \
                 the URL, and that certfile= and keyfile= are given if the server wants them"
            ),
        )
    }

    fn rejected(options: &RedisOptions, why: &str) -> StoreError {
        StoreError::rejected(format!("{}: TLS: {why}", options.server()))
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use incumbent_core::store::StoreError;
    use redis::RedisError;
    use tokio::net::TcpStream;

    use crate::connection::Stream;
    use crate::options::{RedisOptions, TlsOptions};

    #[allow(clippy::unused_async)] // With the feature it waits.
    pub(crate) async fn wrap(
        options: &RedisOptions,
        _how: &TlsOptions,
        _tcp: TcpStream,
    ) -> Result<Stream, StoreError> {
        let server = options.server();
        Err(StoreError::rejected(format!("{server}: this program was built without TLS")))
    }

    pub(crate) fn refusal(_options: &RedisOptions, _error: &RedisError) -> Option<StoreError> {
        None
    }
}
