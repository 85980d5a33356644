//! Who gets in, and how they are known.

use std::path::PathBuf;

use clap::Args;
use incumbent_serve::{Access, Tls};

use crate::config::{Config, Entry};
use crate::exit::{Failure, Outcome};
use crate::session::Session;

/// Who gets in.
#[derive(Args, Clone, Debug)]
pub(super) struct GuardArguments {
    /// Let in only clients with a token in this file: role, name and token in each line [env:
    /// INCUMBENT_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Encrypt TCP with this certificate, a PEM file with its chain [env: INCUMBENT_TLS_CERT]
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate, a PEM file that others can't read [env: INCUMBENT_TLS_KEY]
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// On TCP, let in only clients whose certificates these authorities signed, a PEM file [env:
    /// INCUMBENT_CLIENT_CA]
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// What these clients may do: a role and a name in each line, such as `operator cn:alice`
    /// [default: everything]
    /// [env: INCUMBENT_CERTIFICATE_ROLES]
    #[arg(long, value_name = "FILE")]
    certificate_roles: Option<PathBuf>,
    /// Accept requests for this host name too; otherwise only for localhost, unless tokens or
    /// certificates are needed
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Refuse everything that changes anything
    #[arg(long)]
    read_only: bool,
}

impl GuardArguments {
    /// Who gets in, by tokens.
    pub(super) fn access(&self, config: &Config) -> Outcome<Access> {
        let mut access = Access::open().read_only(self.read_only);
        let file = &config.serve.token_file;
        if let Some(path) = chosen(&self.token_file, "INCUMBENT_TOKEN_FILE", file.as_ref())? {
            access = access.with_token_file(&path).map_err(Failure::usage)?;
        }
        for host in &self.allow_host {
            access = access.with_host(host);
        }
        Ok(access)
    }

    /// How TCP is encrypted, if it is, and whose certificates get in.
    pub(super) fn tls(&self, config: &Config) -> Outcome<Option<Tls>> {
        let serve = &config.serve;
        let certificate = chosen(&self.tls_cert, "INCUMBENT_TLS_CERT", serve.tls_cert.as_ref())?;
        let key = chosen(&self.tls_key, "INCUMBENT_TLS_KEY", serve.tls_key.as_ref())?;
        let authorities = chosen(&self.client_ca, "INCUMBENT_CLIENT_CA", serve.client_ca.as_ref())?;
        let roles = &serve.certificate_roles;
        let roles = chosen(&self.certificate_roles, "INCUMBENT_CERTIFICATE_ROLES", roles.as_ref())?;
        if let (Some(roles), None) = (&roles, &authorities) {
            let roles = roles.display();
            let said = "gives roles to certificates, but no certificates are requested: give --client-ca too";
            return Err(Failure::usage(format!("--certificate-roles {roles} {said}")));
        }
        let (certificate, key) = match (certificate, key, &authorities) {
            (Some(certificate), Some(key), _) => (certificate, key),
            (None, None, None) => return Ok(None),
            (None, None, Some(path)) => {
                let path = path.display();
                let said = "needs encrypted connections: give --tls-cert and --tls-key too";
                return Err(Failure::usage(format!("--client-ca {path} {said}")));
            }
            (Some(path), None, _) => return Err(alone("--tls-cert", &path, "--tls-key")),
            (None, Some(path), _) => return Err(alone("--tls-key", &path, "--tls-cert")),
        };
        let mut tls = Tls::new(&certificate, &key).map_err(Failure::usage)?;
        if let Some(path) = authorities {
            tls = tls.with_client_authorities(&path).map_err(Failure::usage)?;
        }
        if let Some(path) = roles {
            tls = tls.with_roles(&path).map_err(Failure::usage)?;
        }
        Ok(Some(tls))
    }
}

fn alone(flag: &str, path: &std::path::Path, other: &str) -> Failure {
    let path = path.display();
    Failure::usage(format!("{flag} {path} has no effect alone: give {other} too"))
}

/// That of the flag, of the variable, or of the file. A variable that a script forgot to set would let
/// everybody in.
fn chosen(
    flag: &Option<PathBuf>,
    variable: &str,
    filed: Option<&Entry<String>>,
) -> Outcome<Option<PathBuf>> {
    if flag.is_some() {
        return Ok(flag.clone());
    }
    match std::env::var_os(variable) {
        Some(path) if path.is_empty() => Err(Failure::usage(format!(
            "{variable} is set, but empty: set it to a file, or unset it to do without"
        ))),
        Some(path) => Ok(Some(PathBuf::from(path))),
        None => Ok(filed.map(|entry| PathBuf::from(&entry.value))),
    }
}

/// Says what people should know of it, at once and when files change.
pub(super) fn remark(session: &Session, access: &Access, tls: Option<&Tls>) {
    let Some(tls) = tls else { return };
    if tls.needs_certificate() && !tls.gives_roles() && !access.needs_token() {
        session.remark(
            "every certificate of these authorities may do all: --certificate-roles says who may do \
             what",
        );
    }
    let (session, mut news) = (session.clone(), tls.news());
    tokio::runtime::Handle::current().spawn(async move {
        while news.changed().await.is_ok() {
            session.remark(news.borrow_and_update().as_str());
        }
    });
}
