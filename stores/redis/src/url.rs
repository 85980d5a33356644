//! Reads `redis://` and `rediss://` URLs.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::StoreError;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::options::{Eviction, RedisOptions, TlsOptions};
use crate::password::Password;

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<RedisOptions, StoreError> {
    let tls = match text.split_once("://") {
        Some(("redis", _)) => None,
        Some(("rediss", _)) if cfg!(feature = "tls") => Some(TlsOptions::default()),
        Some(("rediss", _)) => {
            return Err(StoreError::rejected(
                "rediss:// needs TLS, which this program was built without: enable the feature \
                 tls of incumbent-redis, or use redis://",
            ));
        }
        _ => {
            // The rest isn't shown: it may hold a password.
            let shown: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
            return Err(StoreError::rejected(format!(
                "{:?}… is no Redis URL: write redis://host:6379, or rediss:// for TLS",
                shown.chars().take(32).collect::<String>()
            )));
        }
    };
    let url = Url::parse(text).map_err(|error| malformed(&error.to_string()))?;
    if url.fragment().is_some() {
        return Err(malformed("it has a #"));
    }
    let host = match url.host() {
        Some(Host::Domain(name)) => decoded("host", name)?,
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => String::new(),
    };
    let mut options = RedisOptions::new(host, url.port().unwrap_or(6379));
    options.tls = tls;
    options.username = match url.username() {
        "" => None,
        name => Some(decoded("user", name)?),
    };
    if let Some(password) = url.password().filter(|password| !password.is_empty()) {
        options.password = Password::Given(decoded("password", password)?);
    }
    options.database = database(url.path())?;
    let options = with_query(options, url.query().unwrap_or_default())?;
    finished(options, environment)
}

fn with_query(mut options: RedisOptions, query: &str) -> Result<RedisOptions, StoreError> {
    let mut seen = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if seen.contains(&name) {
            return Err(StoreError::rejected(format!(
                "{name}= comes twice in the Redis URL: keep one"
            )));
        }
        seen.push(name);
        options = apply(options, name, &decoded(name, value)?)?;
    }
    Ok(options)
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
        // What an unknown option holds may be meant to be secret.
        (_, _) => {
            return Err(StoreError::rejected(format!(
                "{name}=…: a Redis URL has the options prefix, passwordfile, cafile, certfile, \
                 keyfile, connect_timeout, timeout, wait, eviction and hints, but no {name:?}"
            )));
        }
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

fn malformed(why: &str) -> StoreError {
    StoreError::rejected(format!(
        "the Redis URL isn't understood ({why}): write redis://user:password@host:6379/0, with \
         %40 for an @ inside a password, %2F for a /, %3F for a ?, %23 for a # and so on"
    ))
}

/// Turns `%2F` into `/` and so on.
fn decoded(name: &str, text: &str) -> Result<String, StoreError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(|text| text.into_owned()).map_err(|_| {
        StoreError::rejected(format!("the {name} in the Redis URL is no text once decoded"))
    })
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
