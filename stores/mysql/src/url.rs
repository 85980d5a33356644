//! Reads `mysql://` and `mariadb://` URLs.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::StoreError;
use url::{Host, Url};

use crate::names::Names;
use crate::options::{MysqlOptions, SslMode, TlsOptions};
use crate::password::Password;

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const FORM: &str = "write mysql://user@host/database, with %40 for an @ inside a name or password";

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<MysqlOptions, StoreError> {
    let known = ["mysql://", "mariadb://"].iter().any(|start| text.starts_with(start));
    if !known {
        // The rest isn't shown: it may hold a password.
        let shown: String = text.chars().take_while(char::is_ascii_alphanumeric).take(32).collect();
        return Err(StoreError::rejected(format!("{shown:?}… is no MySQL URL: {FORM}")));
    }
    let url = Url::parse(text).map_err(|error| {
        StoreError::rejected(format!("the MySQL URL isn't understood: {error}; {FORM}"))
    })?;
    let database = decoded("the database", url.path().trim_start_matches('/'))?;
    if database.is_empty() || database.contains('\0') {
        return Err(StoreError::rejected(format!("the MySQL URL names no database: {FORM}")));
    }
    let user = decoded("the user", url.username())?;
    let login = || environment("USER").filter(|user| !user.is_empty());
    let mut options = MysqlOptions {
        host: host(&url)?,
        port: url.port().unwrap_or(3306),
        socket: None,
        user: if user.is_empty() { login().unwrap_or_else(|| "root".to_owned()) } else { user },
        password: match url.password() {
            Some(password) => Password::Given(decoded("the password", password)?),
            None => environment("MYSQL_PWD").map_or(Password::None, Password::Given),
        },
        database,
        names: Names::new("incumbent_")?,
        tls: TlsOptions {
            mode: SslMode::Preferred,
            authority: None,
            certificate: None,
            key: None,
            hostname: None,
        },
        connect_timeout: Duration::from_secs(3),
        timeout: Duration::from_secs(10),
    };
    let mut seen = Vec::new();
    for pair in url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if seen.contains(&name) {
            return Err(StoreError::rejected(format!(
                "{name}= stands twice in the MySQL URL: keep one"
            )));
        }
        seen.push(name);
        options = apply(options, name, decoded(name, value)?)?;
    }
    checked(options)
}

fn apply(mut options: MysqlOptions, name: &str, value: String) -> Result<MysqlOptions, StoreError> {
    let tls = &mut options.tls;
    match name {
        "prefix" => return options.prefix(&value),
        "passwordfile" => options.password = Password::File(value.into()),
        "socket" => options.socket = Some(value),
        "ssl-mode" => tls.mode = mode(&value)?,
        "ssl-ca" => tls.authority = Some(PathBuf::from(value)),
        "ssl-cert" => tls.certificate = Some(PathBuf::from(value)),
        "ssl-key" => tls.key = Some(PathBuf::from(value)),
        "ssl-hostname" => tls.hostname = Some(value),
        "connect_timeout" => return Ok(options.connect_timeout(milliseconds(name, &value)?)),
        "timeout" => return Ok(options.timeout(milliseconds(name, &value)?)),
        _ => {
            // The value isn't shown: who misspells `password` has a password there.
            return Err(StoreError::rejected(format!(
                "a MySQL URL has the options prefix, passwordfile, socket, ssl-mode, ssl-ca, \
                 ssl-cert, ssl-key, ssl-hostname, connect_timeout and timeout, but no {name:?}"
            )));
        }
    }
    Ok(options)
}

fn checked(options: MysqlOptions) -> Result<MysqlOptions, StoreError> {
    let tls = &options.tls;
    if tls.certificate.is_some() != tls.key.is_some() {
        return Err(StoreError::rejected(
            "ssl-cert= and ssl-key= belong together: give both or neither",
        ));
    }
    if tls.mode == SslMode::Disabled && (tls.authority.is_some() || tls.certificate.is_some()) {
        return Err(StoreError::rejected(
            "ssl-mode=DISABLED and certificates contradict each other: use \
             ssl-mode=VERIFY_IDENTITY, or leave the certificates out",
        ));
    }
    Ok(options)
}

fn host(url: &Url) -> Result<String, StoreError> {
    Ok(match url.host() {
        // As the driver takes it: without brackets.
        Some(Host::Ipv6(address)) => address.to_string(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Domain(name)) => decoded("the host", name)?,
        None => "localhost".to_owned(),
    })
}

fn mode(value: &str) -> Result<SslMode, StoreError> {
    Ok(match value.to_ascii_uppercase().replace('-', "_").as_str() {
        "DISABLED" => SslMode::Disabled,
        "PREFERRED" => SslMode::Preferred,
        "REQUIRED" => SslMode::Required,
        "VERIFY_CA" => SslMode::VerifyCa,
        "VERIFY_IDENTITY" => SslMode::VerifyIdentity,
        _ => {
            return Err(StoreError::rejected(format!(
                "ssl-mode={value} isn't understood: use DISABLED, PREFERRED, REQUIRED, VERIFY_CA \
                 or VERIFY_IDENTITY"
            )));
        }
    })
}

fn milliseconds(name: &str, value: &str) -> Result<Duration, StoreError> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.map(Duration::from_millis).ok_or_else(|| {
        StoreError::rejected(format!(
            "{name}={value} isn't understood: use milliseconds, such as {name}=3000"
        ))
    })
}

/// Turns `%2F` into `/` and so on.
fn decoded(what: &str, text: &str) -> Result<String, StoreError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let byte = after
            .split_first_chunk::<2>()
            .and_then(|(digits, after)| Some((hexadecimal(*digits)?, after)));
        let Some((byte, after)) = byte else { return Err(undecodable(what)) };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| undecodable(what))
}

fn hexadecimal(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

fn undecodable(what: &str) -> StoreError {
    StoreError::rejected(format!(
        "{what} in the MySQL URL: a % is followed by two hexadecimal digits; write %25 for the \
         sign itself"
    ))
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
