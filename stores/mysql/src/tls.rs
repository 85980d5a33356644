//! Encryption with rustls, and MySQL's five ways of trusting the other side.

use incumbent_core::store::StoreError;
use mysql_async::{ClientIdentity, SslOpts};
use rustls::crypto::{CryptoProvider, ring};

use crate::options::{SslMode, TlsOptions};

/// What the driver has to know; `None` to send everything in the clear.
pub(crate) fn driver(options: &TlsOptions) -> Result<Option<SslOpts>, StoreError> {
    if options.mode == SslMode::Disabled {
        return Ok(None);
    }
    // A process may hold several providers, and rustls then refuses to choose. Where the
    // application has chosen, that counts.
    if CryptoProvider::get_default().is_none() {
        let _ = ring::default_provider().install_default();
    }
    let mut tls = SslOpts::default();
    // The driver's own errors name no file.
    options.files.check()?;
    if let Some(path) = &options.files.authorities {
        tls = tls.with_root_certs(vec![path.clone().into()]).with_disable_built_in_roots(true);
    }
    if let Some((certificate, key)) = &options.files.identity {
        let identity = ClientIdentity::new(certificate.clone().into(), key.clone().into());
        tls = tls.with_client_identity(Some(identity));
    }
    if let Some(hostname) = &options.hostname {
        tls = tls.with_danger_tls_hostname_override(Some(hostname.clone()));
    }
    let trusts_anybody = match options.mode {
        SslMode::Disabled | SslMode::Preferred => true,
        // An authority that is given is used.
        SslMode::Required => options.files.authorities.is_none(),
        SslMode::VerifyCa | SslMode::VerifyIdentity => false,
    };
    let any_name = options.mode < SslMode::VerifyIdentity;
    Ok(Some(
        tls.with_danger_accept_invalid_certs(trusts_anybody)
            .with_danger_skip_domain_validation(any_name),
    ))
}
