//! Reads `redis://` and `rediss://` URLs.

use incumbent_core::store::StoreError;
use incumbent_store_common::{Environment, Form, Secret, StoreUrl, TlsFiles, TlsNames};

use crate::options::{Eviction, RedisOptions};

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<RedisOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::REDIS, environment)?;
    let encrypted = url.scheme() == "rediss";
    if encrypted && !cfg!(feature = "tls") {
        return Err(StoreError::rejected(
            "rediss:// needs TLS, which this program was built without: enable the feature tls of \
             incumbent-redis, or use redis://",
        ));
    }
    let given = url.options()?;
    let mut options = RedisOptions::new("", 0);
    options.endpoint = url.endpoint(6379)?;
    options.tls = TlsFiles::only_if(encrypted, "rediss://", &given, TlsNames::USUAL)?;
    options.username = url.user()?.filter(|user| !user.is_empty());
    options.password = url.secret(&given, "REDISCLI_AUTH")?;
    options.database = database(url.raw_path())?;
    options.connect_timeout = given.span("connect_timeout").unwrap_or(options.connect_timeout);
    options.timeout = given.span("timeout").unwrap_or(options.timeout);
    options.wait = given.number("wait").unwrap_or(options.wait);
    options.hints = given.chose("hints", "push").unwrap_or(options.hints);
    if given.chose("eviction", "allow") == Some(true) {
        options.eviction = Eviction::Allow;
    }
    if let Some(prefix) = given.text("prefix") {
        options.prefix = prefix.to_owned();
    }
    if options.username.is_some() && options.password == Secret::None {
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

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
