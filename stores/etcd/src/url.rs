//! Reads `etcd://` and `etcds://` URLs.

use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Environment, Form, Options, Secret, StoreUrl, TlsFiles, TlsNames};

use crate::options::{EtcdOptions, User};

const PORT: u16 = 2379;
const PREFIX: &str = "/incumbent";
const LONGEST_PREFIX: usize = 200;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<EtcdOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::ETCD, environment)?;
    let options = url.options()?;
    let encrypted = url.scheme() == "etcds";
    Ok(EtcdOptions {
        endpoints: url.endpoints(PORT)?,
        prefix: prefix(&url)?,
        user: user(&url, &options)?,
        tls: TlsFiles::only_if(encrypted, "etcds://", &options, TlsNames::USUAL)?,
        timeout: options.span("timeout").unwrap_or(Duration::from_secs(5)),
        connect_timeout: options.span("connect_timeout").unwrap_or(Duration::from_secs(10)),
        access: Access::Full,
    })
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

fn user(url: &StoreUrl<'_>, options: &Options) -> Result<Option<User>, StoreError> {
    let Some(name) = url.user()? else {
        return match options.file("passwordfile") {
            None => Ok(None),
            Some(_) => Err(StoreError::rejected(
                "passwordfile= needs a user in the etcd URL: write etcd://user@host:2379",
            )),
        };
    };
    if name.is_empty() {
        return Err(StoreError::rejected(
            "the user in the etcd URL is empty: write etcd://user@host:2379, or leave the @ out",
        ));
    }
    match url.secret(options, "ETCDCTL_PASSWORD")? {
        Secret::None => Err(StoreError::rejected(format!(
            "there is no password for the etcd user {name:?}: add passwordfile=FILE to the URL, or \
             set ETCDCTL_PASSWORD. A user told by a client certificate isn't named in the URL"
        ))),
        password => Ok(Some(User { name, password })),
    }
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
