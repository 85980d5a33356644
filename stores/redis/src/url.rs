//! Reads `redis://` and `rediss://` URLs.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::StoreError;

use crate::options::{Eviction, RedisOptions, TlsOptions};
use incumbent_store_common::{Endpoint, Form, Password, StoreUrl};

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<RedisOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::REDIS)?;
    let encrypted = url.scheme() == "rediss";
    if encrypted && !cfg!(feature = "tls") {
        return Err(StoreError::rejected(
            "rediss:// needs TLS, which this program was built without: enable the feature tls of \
             incumbent-redis, or use redis://",
        ));
    }
    let endpoints = url.endpoints(6379)?;
    let [Endpoint { host, port }] = endpoints.as_slice() else {
        return Err(url.malformed("it names several hosts, of which there may be one"));
    };
    let mut options = RedisOptions::new(host, *port);
    options.tls = encrypted.then(TlsOptions::default);
    options.username = url.user()?.filter(|user| !user.is_empty());
    if let Some(password) = url.password()?.filter(|password| !password.is_empty()) {
        options.password = Password::Given(password);
    }
    options.database = database(url.raw_path())?;
    for (name, value) in url.options()? {
        options = apply(options, name, &value)?;
    }
    finished(options, environment)
}

fn apply(mut options: RedisOptions, name: &str, value: &str) -> Result<RedisOptions, StoreError> {
    Ok(match (name, value) {
        ("prefix", _) => options.prefix(value),
        ("passwordfile", path) => {
            if options.password != Password::None {
                return Err(StoreError::rejected(
                    "the Redis URL has a password and passwordfile=: keep one",
                ));
            }
            options.password = Password::File(path.into());
            options
        }
        ("connect_timeout", _) => options.connect_timeout(milliseconds(name, value)?),
        ("timeout", _) => options.timeout(milliseconds(name, value)?),
        ("wait", _) => match value.parse() {
            Ok(replicas) => options.wait(replicas),
            Err(_) => return Err(unknown(name, value, "a number of replicas, such as wait=1")),
        },
        ("eviction", "refuse") => options.eviction(Eviction::Refuse),
        ("eviction", "allow") => options.eviction(Eviction::Allow),
        ("eviction", _) => return Err(unknown(name, value, "refuse or allow")),
        ("hints", "push") => options.hints(true),
        ("hints", "off") => options.hints(false),
        ("hints", _) => return Err(unknown(name, value, "push or off")),
        ("cafile" | "certfile" | "keyfile", path) => {
            let Some(tls) = &mut options.tls else {
                return Err(StoreError::rejected(format!(
                    "{name}= is about TLS, which redis:// doesn't use: write rediss://"
                )));
            };
            let path = Some(PathBuf::from(path));
            match name {
                "cafile" => tls.authorities = path,
                "certfile" => tls.certificate = path,
                _ => tls.key = path,
            }
            options
        }
        (_, _) => options,
    })
}

fn finished(
    mut options: RedisOptions,
    environment: Environment<'_>,
) -> Result<RedisOptions, StoreError> {
    if let Some(tls) = &options.tls
        && tls.certificate.is_some() != tls.key.is_some()
    {
        return Err(StoreError::rejected(
            "certfile= and keyfile= belong together: give both or neither",
        ));
    }
    if options.password == Password::None
        && let Some(password) = environment("REDISCLI_AUTH").filter(|text| !text.is_empty())
    {
        options.password = Password::Given(password);
    }
    if options.username.is_some() && options.password == Password::None {
        return Err(StoreError::rejected(
            "the Redis URL names a user and no password: add it, passwordfile= or the variable \
             REDISCLI_AUTH",
        ));
    }
    options.checked()
}

fn database(path: &str) -> Result<i64, StoreError> {
    let text = path.strip_prefix('/').unwrap_or(path);
    if text.is_empty() {
        return Ok(0);
    }
    let number: Option<u32> = text.parse().ok();
    number.map(i64::from).ok_or_else(|| {
        StoreError::rejected(
            "what follows the host in a Redis URL is the number of a database, as in \
             redis://host:6379/2; write %2F for a / inside a password",
        )
    })
}

fn milliseconds(name: &str, value: &str) -> Result<Duration, StoreError> {
    let number = value.parse().ok().filter(|number| *number > 0);
    let number = number
        .ok_or_else(|| unknown(name, value, &format!("milliseconds, such as {name}=1000")))?;
    Ok(Duration::from_millis(number))
}

fn unknown(name: &str, value: &str, known: &str) -> StoreError {
    StoreError::rejected(format!("{name}={value} isn't understood: use {known}"))
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
