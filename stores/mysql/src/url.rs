//! Reads `mysql://` and `mariadb://` URLs.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};

use crate::names::Names;
use crate::options::{MysqlOptions, SslMode, TlsOptions};
use incumbent_store_common::{Endpoint, Form, Password, StoreUrl};

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<MysqlOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::MYSQL)?;
    let database = url.path()?;
    if database.is_empty() || database.contains('\0') {
        return Err(url.malformed("it names no database"));
    }
    let (host, port) = host(&url)?;
    let user = url.user()?.unwrap_or_default();
    let login = || environment("USER").filter(|user| !user.is_empty());
    let mut options = MysqlOptions {
        host,
        port,
        socket: None,
        user: if user.is_empty() { login().unwrap_or_else(|| "root".to_owned()) } else { user },
        password: match url.password()? {
            Some(password) => Password::Given(password),
            None => environment("MYSQL_PWD").map_or(Password::None, Password::Given),
        },
        database,
        access: Access::Full,
        names: Names::new("incumbent_")?,
        tls: TlsOptions {
            mode: SslMode::Preferred,
            authority: None,
            certificate: None,
            key: None,
            hostname: None,
        },
        connect_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
    };
    for (name, value) in url.options()? {
        if name == "passwordfile" && url.password()?.is_some() {
            return Err(StoreError::rejected(
                "the MySQL URL has a password and passwordfile=: keep one",
            ));
        }
        options = apply(options, name, value)?;
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
        _ => {}
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

/// Without a host it is this machine.
fn host(url: &StoreUrl<'_>) -> Result<(String, u16), StoreError> {
    const PORT: u16 = 3306;
    if url.raw_hosts().is_empty() {
        return Ok(("localhost".to_owned(), PORT));
    }
    match url.endpoints(PORT)?.as_slice() {
        [Endpoint { host, port }] => Ok((host.clone(), *port)),
        _ => Err(url.malformed("it names several hosts, of which there may be one")),
    }
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

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
