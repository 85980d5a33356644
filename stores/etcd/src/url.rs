//! Reads `etcd://` and `etcds://` URLs. No message shows more of one than it must: a password may
//! stand where it doesn't belong.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::StoreError;

use crate::options::{Endpoint, EtcdOptions, Identity, TlsOptions, User};
use crate::password::Password;

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const PORT: u16 = 2379;
const PREFIX: &str = "/incumbent";
const LONGEST_PREFIX: usize = 200;

pub(crate) fn parse(url: &str, environment: Environment<'_>) -> Result<EtcdOptions, StoreError> {
    let encrypted = url.strip_prefix("etcds://");
    let Some(rest) = encrypted.or_else(|| url.strip_prefix("etcd://")) else {
        let shown: String = url.chars().take_while(char::is_ascii_alphanumeric).take(32).collect();
        return Err(StoreError::rejected(format!(
            "{shown:?}… is no etcd URL: write etcd://host:2379/prefix, or etcds:// for TLS"
        )));
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    };
    let parameters = Parameters::read(query)?;
    let options = EtcdOptions {
        endpoints: endpoints(hosts)?,
        prefix: prefix(path)?,
        user: self::user(user, &parameters, environment)?,
        tls: tls(encrypted.is_some(), &parameters)?,
        timeout: parameters.timeout.unwrap_or(Duration::from_secs(5)),
        connect_timeout: parameters.connect_timeout.unwrap_or(Duration::from_secs(2)),
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
    fn read(query: &str) -> Result<Self, StoreError> {
        let mut parameters = Self::default();
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if seen.contains(&name) {
                return Err(StoreError::rejected(format!(
                    "{name}= stands twice in the etcd URL: keep one"
                )));
            }
            seen.push(name);
            parameters.take(name, &decode(name, value)?)?;
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
            _ => return Err(unknown(name)),
        };
        if value.is_empty() {
            return Err(StoreError::rejected(format!("{name}= is empty: name a file")));
        }
        *file = Some(value.into());
        Ok(())
    }
}

fn unknown(name: &str) -> StoreError {
    let shown: String = name.chars().take(32).collect();
    let step =
        if name == "password" { "; write passwordfile=FILE, or set ETCDCTL_PASSWORD" } else { "" };
    StoreError::rejected(format!(
        "an etcd URL has the parameters cafile, certfile, keyfile, passwordfile, timeout and \
         connect_timeout, but no {shown:?}{step}"
    ))
}

fn endpoints(hosts: &str) -> Result<Vec<Endpoint>, StoreError> {
    hosts.split(',').map(endpoint).collect()
}

fn endpoint(text: &str) -> Result<Endpoint, StoreError> {
    let wrong = || {
        StoreError::rejected(format!(
            "{text:?} in the etcd URL is no endpoint: write host:2379, or several as \
             host-1:2379,host-2:2379, and an IPv6 address in brackets"
        ))
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(wrong)?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| wrong())?;
            let port = if after.is_empty() { None } else { after.strip_prefix(':') };
            if port.is_none() && !after.is_empty() {
                return Err(wrong());
            }
            (host, port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let clean = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(clean) {
        return Err(wrong());
    }
    let port = match port {
        None => PORT,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?,
    };
    Ok(Endpoint { host: host.to_owned(), port })
}

fn prefix(path: &str) -> Result<String, StoreError> {
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Ok(PREFIX.to_owned());
    }
    let prefix = decode("the prefix", path)?;
    if prefix.len() > LONGEST_PREFIX || prefix.chars().any(char::is_control) {
        return Err(StoreError::rejected(format!(
            "the prefix {prefix:?} in the etcd URL can't be used: choose up to {LONGEST_PREFIX} \
             bytes without control characters, such as /incumbent"
        )));
    }
    Ok(prefix)
}

fn user(
    text: Option<&str>,
    parameters: &Parameters,
    environment: Environment<'_>,
) -> Result<Option<User>, StoreError> {
    let Some(text) = text else {
        if parameters.passwordfile.is_some() {
            return Err(StoreError::rejected(
                "passwordfile= needs a user in the etcd URL: write etcd://user@host:2379",
            ));
        }
        return Ok(None);
    };
    let (name, given) = match text.split_once(':') {
        Some((name, password)) => (name, Some(decode("the password", password)?)),
        None => (text, None),
    };
    let name = decode("the user", name)?;
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

/// Turns `%2F` into `/` and so on.
fn decode(what: &str, text: &str) -> Result<String, StoreError> {
    let wrong = || {
        StoreError::rejected(format!(
            "{what} in the etcd URL: a % is followed by two hexadecimal digits, and all of it is \
             UTF-8; write %25 for the sign itself"
        ))
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = after.split_first_chunk::<2>().ok_or_else(wrong)?;
        bytes.push(hexadecimal(*digits).ok_or_else(wrong)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn hexadecimal(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
