//! Reads `nats://` and `tls://` URLs.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::StoreError;
use incumbent_store_common::{Endpoint, Form, StoreUrl};

use crate::login::{Login, Secret};
use crate::options::NatsOptions;

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<NatsOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::NATS)?;
    if !matches!(url.raw_path(), "" | "/") {
        return Err(url.malformed("nothing may follow the host but ?options"));
    }
    let mut options = NatsOptions::new("");
    options.servers = url.endpoints(4222)?.iter().map(Endpoint::to_string).collect();
    options.tls = url.scheme() == "tls";
    let mut seen = Seen {
        user: url.user()?.filter(|user| !user.is_empty()),
        password: url.password()?.filter(|text| !text.is_empty()).map(Secret::Given),
        other: Vec::new(),
    };
    for (name, value) in url.options()? {
        options = apply(options, &mut seen, name, &value)?;
    }
    options.login = seen.login(environment)?;
    if options.files.certificate.is_some() != options.files.key.is_some() {
        return Err(StoreError::rejected(
            "certfile= and keyfile= belong together: give both or neither",
        ));
    }
    options.checked()
}

/// What was found about the login.
struct Seen {
    /// What stands before the `@`: a user with or without a password, or a token.
    user: Option<String>,
    password: Option<Secret>,
    /// All other ways, of which there may be one.
    other: Vec<Login>,
}

impl Seen {
    fn login(self, environment: Environment<'_>) -> Result<Login, StoreError> {
        let variable = |name| environment(name).filter(|text: &String| !text.is_empty());
        let mut ways = self.other;
        match (self.user, self.password) {
            (Some(user), Some(password)) => ways.push(Login::User(user, password)),
            (Some(user), None) => ways.push(match variable("NATS_PASSWORD") {
                Some(password) => Login::User(user, Secret::Given(password)),
                // As everywhere in NATS, a lone name before the `@` is a token.
                None => Login::Token(Secret::Given(user)),
            }),
            (None, Some(_)) => {
                return Err(StoreError::rejected(
                    "the NATS URL has a password and no user: write nats://user@host",
                ));
            }
            (None, None) => {}
        }
        let first = ways.pop();
        if !ways.is_empty() {
            return Err(StoreError::rejected(
                "the NATS URL has several logins: keep one of user and password, token, \
                 tokenfile=, creds= and nkey=",
            ));
        }
        let environment = || variable("NATS_CREDS").map(|path| Login::Credentials(path.into()));
        Ok(first.or_else(environment).unwrap_or_default())
    }
}

fn apply(
    mut options: NatsOptions,
    seen: &mut Seen,
    name: &str,
    value: &str,
) -> Result<NatsOptions, StoreError> {
    let path = || PathBuf::from(value);
    match (name, value) {
        ("bucket", _) => options.bucket = value.to_owned(),
        ("inbox", _) => options.inbox = value.to_owned(),
        ("replicas", _) => match value.parse() {
            Ok(replicas @ 1..=5) => options.replicas = replicas,
            _ => return Err(unknown(name, value, "a number from 1 to 5, such as replicas=3")),
        },
        ("passwordfile", _) if seen.password.is_some() => {
            return Err(StoreError::rejected(
                "the NATS URL has a password and passwordfile=: keep one",
            ));
        }
        ("passwordfile", _) => seen.password = Some(Secret::File(path())),
        ("tokenfile", _) => seen.other.push(Login::Token(Secret::File(path()))),
        ("creds", _) => seen.other.push(Login::Credentials(path())),
        ("nkey", _) => seen.other.push(Login::Key(path())),
        ("cafile", _) => options.files.authorities = Some(path()),
        ("certfile", _) => options.files.certificate = Some(path()),
        ("keyfile", _) => options.files.key = Some(path()),
        ("tls_first", "true") => options.tls_first = true,
        ("tls_first", "false") => options.tls_first = false,
        ("tls_first", _) => return Err(unknown(name, value, "true or false")),
        ("connect_timeout", _) => options = options.connect_timeout(milliseconds(name, value)?),
        ("timeout", _) => options = options.timeout(milliseconds(name, value)?),
        ("hints", "push") => options.hints = true,
        ("hints", "off") => options.hints = false,
        ("hints", _) => return Err(unknown(name, value, "push or off")),
        (_, _) => {}
    }
    Ok(options)
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
