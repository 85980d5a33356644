//! Reads `nats://` and `tls://` URLs.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::StoreError;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::login::{Login, Secret};
use crate::options::NatsOptions;

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<NatsOptions, StoreError> {
    let (tls, rest) = match text.split_once("://") {
        Some(("nats", rest)) => (false, rest),
        Some(("tls", rest)) => (true, rest),
        _ => {
            // The rest isn't shown: it may hold a password.
            let shown: String =
                text.chars().take_while(char::is_ascii_alphanumeric).take(32).collect();
            return Err(StoreError::rejected(format!(
                "{shown:?}… is no NATS URL: write nats://host:4222, or tls:// for encryption"
            )));
        }
    };
    if rest.contains('#') {
        return Err(malformed("it has a #"));
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    if !path.is_empty() {
        return Err(malformed("nothing may follow the host but ?options"));
    }
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    };
    let servers = hosts.split(',').map(server).collect::<Result<Vec<_>, _>>()?;
    let mut options = NatsOptions::new("");
    options.servers = servers;
    options.tls = tls;
    let mut seen = Seen::default();
    seen.user(user)?;
    let mut names = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if names.contains(&name) {
            return Err(StoreError::rejected(format!(
                "{name}= comes twice in the NATS URL: keep one"
            )));
        }
        names.push(name);
        options = apply(options, &mut seen, name, &decoded(name, value)?)?;
    }
    options.login = seen.login(environment)?;
    if options.files.certificate.is_some() != options.files.key.is_some() {
        return Err(StoreError::rejected(
            "certfile= and keyfile= belong together: give both or neither",
        ));
    }
    options.checked()
}

/// One `host:port` with the port that NATS has by default.
fn server(text: &str) -> Result<String, StoreError> {
    // The driver takes the scheme to know nothing special about hosts, and so do we.
    let url =
        Url::parse(&format!("nats://{text}")).map_err(|error| malformed(&error.to_string()))?;
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| malformed("no host is named"))?;
    Ok(format!("{host}:{}", url.port().unwrap_or(4222)))
}

/// What was found about the login.
#[derive(Default)]
struct Seen {
    user: Option<String>,
    password: Option<Secret>,
    /// All other ways, of which there may be one.
    other: Vec<Login>,
}

impl Seen {
    /// What stands before the `@`: a user and a password, a user alone, or a token.
    fn user(&mut self, text: Option<&str>) -> Result<(), StoreError> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(()) };
        let (user, password) = match text.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (text, None),
        };
        self.user = Some(decoded("user", user)?).filter(|user| !user.is_empty());
        if let Some(password) = password.filter(|password| !password.is_empty()) {
            self.password = Some(Secret::Given(decoded("password", password)?));
        }
        Ok(())
    }

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
        // What an unknown option holds may be meant to be secret.
        (_, _) => {
            return Err(StoreError::rejected(format!(
                "{name:?} is no option of a NATS URL: there are bucket, replicas, passwordfile, \
                 tokenfile, creds, nkey, cafile, certfile, keyfile, tls_first, inbox, \
                 connect_timeout, timeout and hints"
            )));
        }
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

fn malformed(why: &str) -> StoreError {
    StoreError::rejected(format!(
        "the NATS URL isn't understood ({why}): write nats://user:password@host:4222, with %40 \
         for an @ inside a password, %2F for a /, %3F for a ?, %23 for a # and so on"
    ))
}

/// Turns `%2F` into `/` and so on.
fn decoded(name: &str, text: &str) -> Result<String, StoreError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(|text| text.into_owned()).map_err(|_| {
        StoreError::rejected(format!("the {name} in the NATS URL is no text once decoded"))
    })
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
