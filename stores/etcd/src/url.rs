//! Reads `etcd://` and `etcds://` URLs.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Form, StoreUrl};

use crate::options::{EtcdOptions, Identity, TlsOptions, User};
use crate::password::Password;

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const PORT: u16 = 2379;
const PREFIX: &str = "/incumbent";
const LONGEST_PREFIX: usize = 200;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<EtcdOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::ETCD)?;
    let parameters = Parameters::read(&url)?;
    let options = EtcdOptions {
        endpoints: url.endpoints(PORT)?,
        prefix: prefix(&url)?,
        user: user(&url, &parameters, environment)?,
        tls: tls(url.scheme() == "etcds", &parameters)?,
        timeout: parameters.timeout.unwrap_or(Duration::from_secs(5)),
        connect_timeout: parameters.connect_timeout.unwrap_or(Duration::from_secs(2)),
        access: Access::Full,
    };
    options.checked()
}

/// What follows the question mark.
#[derive(Default)]
struct Parameters {
    cafile: Option<PathBuf>,
    certfile: Option<PathBuf>,
    keyfile: Option<PathBuf>,
    passwordfile: Option<PathBuf>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
}

impl Parameters {
    fn read(url: &StoreUrl<'_>) -> Result<Self, StoreError> {
        let mut parameters = Self::default();
        for (name, value) in url.options()? {
            parameters.take(name, &value)?;
        }
        Ok(parameters)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), StoreError> {
        let file = match name {
            "cafile" => &mut self.cafile,
            "certfile" => &mut self.certfile,
            "keyfile" => &mut self.keyfile,
            "passwordfile" => &mut self.passwordfile,
            "timeout" => {
                self.timeout = Some(milliseconds(name, value)?);
                return Ok(());
            }
            "connect_timeout" => {
                self.connect_timeout = Some(milliseconds(name, value)?);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if value.is_empty() {
            return Err(StoreError::rejected(format!("{name}= is empty: name a file")));
        }
        *file = Some(value.into());
        Ok(())
    }
}

fn prefix(url: &StoreUrl<'_>) -> Result<String, StoreError> {
    if url.raw_path().trim_end_matches('/').is_empty() {
        return Ok(PREFIX.to_owned());
    }
    let prefix = format!("/{}", url.path()?.trim_end_matches('/'));
    if prefix.len() > LONGEST_PREFIX || prefix.chars().any(char::is_control) {
        return Err(StoreError::rejected(format!(
            "the prefix {prefix:?} in the etcd URL can't be used: choose up to {LONGEST_PREFIX} \
             bytes without control characters, such as /incumbent"
        )));
    }
    Ok(prefix)
}

fn user(
    url: &StoreUrl<'_>,
    parameters: &Parameters,
    environment: Environment<'_>,
) -> Result<Option<User>, StoreError> {
    let Some(name) = url.user()? else {
        if parameters.passwordfile.is_some() {
            return Err(StoreError::rejected(
                "passwordfile= needs a user in the etcd URL: write etcd://user@host:2379",
            ));
        }
        return Ok(None);
    };
    let given = url.password()?;
    if name.is_empty() {
        return Err(StoreError::rejected(
            "the user in the etcd URL is empty: write etcd://user@host:2379, or leave the @ out",
        ));
    }
    let password = match (&parameters.passwordfile, given, environment("ETCDCTL_PASSWORD")) {
        (Some(file), _, _) => Password::File(file.clone()),
        (None, Some(given), _) | (None, None, Some(given)) => Password::Given(given),
        (None, None, None) => {
            return Err(StoreError::rejected(format!(
                "there is no password for the etcd user {name:?}: add passwordfile=FILE to the \
                 URL, or set ETCDCTL_PASSWORD. A user told by a client certificate isn't named \
                 in the URL"
            )));
        }
    };
    Ok(Some(User { name, password }))
}

fn tls(encrypted: bool, parameters: &Parameters) -> Result<Option<TlsOptions>, StoreError> {
    let Parameters { cafile, certfile, keyfile, .. } = parameters;
    if !encrypted {
        if cafile.is_some() || certfile.is_some() || keyfile.is_some() {
            return Err(StoreError::rejected(
                "cafile=, certfile= and keyfile= are for encrypted connections: write etcds://",
            ));
        }
        return Ok(None);
    }
    let identity = match (certfile.clone(), keyfile.clone()) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(StoreError::rejected(
                "certfile= and keyfile= belong together: give both or neither",
            ));
        }
    };
    Ok(Some(TlsOptions { ca: cafile.clone(), identity }))
}

fn milliseconds(name: &str, value: &str) -> Result<Duration, StoreError> {
    value.parse().map(Duration::from_millis).map_err(|_| {
        StoreError::rejected(format!(
            "{name}={value} isn't understood: use milliseconds, such as {name}=2000"
        ))
    })
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
