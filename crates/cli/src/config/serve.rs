//! What a configuration file says about `serve`.

use super::Entry;
use super::reader::{Reader, Table};

/// The keys of the table `[serve]`.
const KEYS: &str = "token-file, tls-cert, tls-key, client-ca and certificate-roles";

/// What a configuration file says about `serve`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "the file means the same without it"))]
pub(crate) struct ServeConfig {
    /// The tokens that get in.
    pub(crate) token_file: Option<Entry<String>>,
    /// The server's certificate.
    pub(crate) tls_cert: Option<Entry<String>>,
    /// Its key.
    pub(crate) tls_key: Option<Entry<String>>,
    /// Who vouches for clients.
    pub(crate) client_ca: Option<Entry<String>>,
    /// What their certificates are for.
    pub(crate) certificate_roles: Option<Entry<String>>,
}

impl ServeConfig {
    pub(super) fn parse(reader: &Reader<'_>, table: &Table<'_>) -> Result<Self, String> {
        let mut serve = Self::default();
        for (key, value) in table {
            let place = match key.get_ref().as_ref() {
                "token-file" => &mut serve.token_file,
                "tls-cert" => &mut serve.tls_cert,
                "tls-key" => &mut serve.tls_key,
                "client-ca" => &mut serve.client_ca,
                "certificate-roles" => &mut serve.certificate_roles,
                _ => return Err(reader.unknown(key, KEYS)),
            };
            *place = Some(reader.text(key, value)?);
        }
        Ok(serve)
    }
}
