//! What new connections go by: the files as they were last read.

use std::sync::Arc;

use incumbent_store_common::provider;
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use tokio_rustls::TlsAcceptor;

use super::TlsError;
use super::parts::{Authorities, Identity, Paths, read_roles};
use crate::grants::Grants;

/// What is spoken over it.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What new connections go by.
#[derive(Clone)]
pub(super) struct State {
    identity: Identity,
    authorities: Option<Authorities>,
    pub(super) roles: Option<Grants>,
    pub(super) acceptor: TlsAcceptor,
}

impl State {
    /// Reads all files for the first time.
    pub(super) fn read(paths: &Paths) -> Result<Self, TlsError> {
        let identity = Identity::read(paths, None)?;
        let authorities = paths.authorities.as_ref().map(|path| Authorities::read(path, None));
        let authorities = authorities.transpose()?;
        let roles = paths.roles.as_ref().map(|path| read_roles(path)).transpose()?;
        let acceptor = acceptor(&identity, authorities.as_ref())?;
        Ok(Self { identity, authorities, roles, acceptor })
    }

    /// Reads them again. What is broken stays as it was, and holds up nothing else: a role that was taken away
    /// doesn't wait for a certificate. Says whether anything is new, and what is broken.
    pub(super) fn again(&self, paths: &Paths) -> (Option<Self>, Vec<TlsError>) {
        let (mut next, mut troubles) = (self.clone(), Vec::new());
        match Identity::read(paths, Some(&self.identity)) {
            Ok(identity) => next.identity = identity,
            Err(error) => troubles.push(error),
        }
        if let (Some(path), Some(former)) = (&paths.authorities, &self.authorities) {
            match Authorities::read(path, Some(former)) {
                Ok(authorities) => next.authorities = Some(authorities),
                Err(error) => troubles.push(error),
            }
        }
        if let Some(path) = &paths.roles {
            match read_roles(path) {
                Ok(roles) => next.roles = Some(roles),
                Err(error) => troubles.push(error),
            }
        }
        let roles = next.roles != self.roles;
        let keys = next.identity != self.identity || next.authorities != self.authorities;
        if keys {
            match acceptor(&next.identity, next.authorities.as_ref()) {
                Ok(acceptor) => next.acceptor = acceptor,
                Err(error) => return (None, vec![error]),
            }
        }
        ((keys || roles).then_some(next), troubles)
    }
}

fn acceptor(
    identity: &Identity,
    authorities: Option<&Authorities>,
) -> Result<TlsAcceptor, TlsError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError(format!("TLS can't be used: {error}")))?;
    let builder = match authorities {
        None => builder.with_no_client_auth(),
        Some(authorities) => builder.with_client_cert_verifier(authorities.verifier()),
    };
    let mut config = builder.with_cert_resolver(identity.resolver());
    config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
    // Who resumes shows no certificate. Each connection is to prove anew who made it, by the authorities
    // of that moment.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
