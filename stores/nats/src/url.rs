//! Reads `nats://` and `tls://` URLs.

use incumbent_core::store::StoreError;
use incumbent_store_common::{
    Endpoint, Environment, Form, Options, Secret, StoreUrl, TlsFiles, TlsNames,
};

use crate::login::Login;
use crate::options::NatsOptions;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<NatsOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::NATS, environment)?;
    if !matches!(url.raw_path(), "" | "/") {
        return Err(url.malformed("nothing may follow the host but ?options"));
    }
    let given = url.options()?;
    let mut options = NatsOptions::new("");
    options.servers = url.endpoints(4222)?.iter().map(Endpoint::to_string).collect();
    options.tls = url.scheme() == "tls";
    options.tls_first = given.chose("tls_first", "true").unwrap_or(false);
    options.files = TlsFiles::read(&given, TlsNames::USUAL)?;
    options.login = login(&url, &given, environment)?;
    options.replicas = given.number("replicas").unwrap_or(options.replicas);
    options.connect_timeout = given.span("connect_timeout").unwrap_or(options.connect_timeout);
    options.timeout = given.span("timeout").unwrap_or(options.timeout);
    options.hints = given.chose("hints", "push").unwrap_or(options.hints);
    if let Some(bucket) = given.text("bucket") {
        options.bucket = bucket.to_owned();
    }
    if let Some(inbox) = given.text("inbox") {
        options.inbox = inbox.to_owned();
    }
    options.checked()
}

/// What stands before the `@` is a user with or without a password, or a token. There are other ways,
/// but only one of all may be chosen.
fn login(
    url: &StoreUrl<'_>,
    given: &Options,
    environment: Environment<'_>,
) -> Result<Login, StoreError> {
    let mut ways = Vec::new();
    ways.extend(given.file("tokenfile").map(|path| Login::Token(Secret::File(path))));
    ways.extend(given.file("creds").map(Login::Credentials));
    ways.extend(given.file("nkey").map(Login::Key));
    let user = url.user()?.filter(|user| !user.is_empty());
    let alone = url.password()?.is_none_or(|password| password.is_empty());
    match (user, url.secret(given, "NATS_PASSWORD")?) {
        // As everywhere in NATS, a lone name before the `@` is a token.
        (Some(token), Secret::None) => ways.push(Login::Token(Secret::Given(token))),
        (Some(user), password) => ways.push(Login::User(user, password)),
        (None, Secret::File(_)) => return Err(no_user()),
        (None, Secret::Given(_)) if !alone => return Err(no_user()),
        (None, Secret::Given(_) | Secret::None) => {}
    }
    let first = ways.pop();
    if !ways.is_empty() {
        return Err(StoreError::rejected(
            "the NATS URL has several logins: keep one of user and password, token, tokenfile=, \
             creds= and nkey=",
        ));
    }
    let variable = environment("NATS_CREDS").filter(|path| !path.is_empty());
    Ok(first.or_else(|| variable.map(|path| Login::Credentials(path.into()))).unwrap_or_default())
}

fn no_user() -> StoreError {
    StoreError::rejected("the NATS URL has a password and no user: write nats://user@host")
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
