//! Reads `postgres://` URLs: libpq's own parameters, and incumbent's.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Form, StoreUrl, encoded};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use crate::error::chain;
use crate::names::Names;
use crate::options::{Pooler, PostgresOptions, TlsMode, TlsOptions, TlsRoot};
use crate::password::Password;

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What libpq knows and what changes nothing here.
const HARMLESS: [&str; 3] = ["client_encoding", "fallback_application_name", "gssencmode"];

pub(crate) fn parse(
    text: &str,
    environment: Environment<'_>,
) -> Result<PostgresOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::POSTGRES)?;
    let mut own = Own::default();
    let mut rest = Vec::new();
    for (name, value) in url.options()? {
        if !own.take(name, &value)? {
            rest.push(format!("{name}={}", encoded(&value)));
        }
    }
    // Written anew, so that the driver can't take it apart in another way.
    let login = match (url.user()?, url.password()?) {
        (Some(user), Some(password)) => format!("{}:{}@", encoded(&user), encoded(&password)),
        (Some(user), None) => format!("{}@", encoded(&user)),
        (None, _) => String::new(),
    };
    let (hosts, path) = (url.raw_hosts(), encoded(&url.path()?));
    let written = format!("postgres://{login}{hosts}/{path}?{}", rest.join("&"));
    let mut config: Config = written.parse().map_err(|error| url.malformed(&chain(&error)))?;
    complete(&mut config, environment)?;
    own.finish(config, environment)
}

/// What the driver doesn't know.
#[derive(Default)]
struct Own {
    schema: Option<String>,
    prefix: Option<String>,
    password_file: Option<String>,
    passfile: Option<String>,
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    sslcert: Option<String>,
    sslkey: Option<String>,
    session: Option<String>,
    lock_timeout: Option<u64>,
    statement_timeout: Option<u64>,
    pooler: Option<Pooler>,
}

impl Own {
    /// Whether this parameter is ours.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, StoreError> {
        let text = || Some(value.to_owned());
        match name {
            "schema" => self.schema = text(),
            "prefix" => self.prefix = text(),
            "passwordfile" => self.password_file = text(),
            "passfile" => self.passfile = text(),
            "sslmode" => self.sslmode = text(),
            "ssl" if value == "true" => self.sslmode = Some("require".to_owned()),
            "sslrootcert" => self.sslrootcert = text(),
            "sslcert" => self.sslcert = text(),
            "sslkey" => self.sslkey = text(),
            "target_session_attrs" => self.session = text(),
            "lock_timeout" => self.lock_timeout = Some(milliseconds(name, value)?),
            "statement_timeout" => self.statement_timeout = Some(milliseconds(name, value)?),
            "pooler" => {
                self.pooler = Some(match value {
                    "detect" => Pooler::Detect,
                    "yes" => Pooler::Yes,
                    _ => return Err(unknown(name, value, "detect or yes")),
                });
            }
            "sslpassword" | "sslcrl" | "sslcrldir" | "require_auth" => {
                return Err(StoreError::rejected(format!(
                    "{name}= isn't supported in the PostgreSQL URL: leave it out{}",
                    if name == "sslpassword" { " and give a key without a password" } else { "" }
                )));
            }
            other if HARMLESS.contains(&other) => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(
        self,
        mut config: Config,
        environment: Environment<'_>,
    ) -> Result<PostgresOptions, StoreError> {
        only_primaries(&mut config, self.session.as_deref())?;
        if self.password_file.is_some() && config.get_password().is_some() {
            return Err(StoreError::rejected(
                "the PostgreSQL URL has a password and passwordfile=: keep one",
            ));
        }
        let password = self.password(&config, environment);
        let password = match (password, environment("PGPASSWORD")) {
            (Password::Passfile(_), Some(given)) if self.passfile.is_none() => {
                config.password(given);
                Password::Given
            }
            (password, _) => password,
        };
        let names = Names::new(
            self.schema.as_deref().unwrap_or("public"),
            self.prefix.as_deref().unwrap_or("incumbent_"),
        )?;
        let options = PostgresOptions {
            names,
            password,
            tls: self.tls(environment)?,
            connect_timeout: connect_timeout(&mut config, environment),
            lock_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(10),
            pooler: self.pooler.unwrap_or(Pooler::Detect),
            access: Access::Full,
            config,
        };
        let lock = self.lock_timeout.map(Duration::from_millis);
        let statement = self.statement_timeout.map(Duration::from_millis);
        let (default_lock, default_statement) = (options.lock_timeout, options.statement_timeout);
        Ok(options
            .lock_timeout(lock.unwrap_or(default_lock))
            .statement_timeout(statement.unwrap_or(default_statement)))
    }

    fn password(&self, config: &Config, environment: Environment<'_>) -> Password {
        if let Some(path) = &self.password_file {
            return Password::File(path.into());
        }
        if config.get_password().is_some() {
            return Password::Given;
        }
        let home = || environment("HOME").map(|home| format!("{home}/.pgpass"));
        let path = self.passfile.clone().or_else(|| environment("PGPASSFILE")).or_else(home);
        Password::Passfile(path.map(PathBuf::from))
    }

    fn tls(&self, environment: Environment<'_>) -> Result<TlsOptions, StoreError> {
        let or = |given: &Option<String>, name: &str| given.clone().or_else(|| environment(name));
        let mode = or(&self.sslmode, "PGSSLMODE").unwrap_or_else(|| "prefer".to_owned());
        let mode = match mode.as_str() {
            "disable" => TlsMode::Disable,
            "allow" | "prefer" => TlsMode::Prefer,
            "require" => TlsMode::Require,
            "verify-ca" => TlsMode::VerifyCa,
            "verify-full" => TlsMode::VerifyFull,
            _ => {
                let known = "disable, prefer, require, verify-ca or verify-full";
                return Err(unknown("sslmode", &mode, known));
            }
        };
        let root = or(&self.sslrootcert, "PGSSLROOTCERT").map(|root| match root.as_str() {
            "system" => TlsRoot::System,
            _ => TlsRoot::File(root.into()),
        });
        if mode >= TlsMode::VerifyCa && root.is_none() {
            return Err(StoreError::rejected(
                "sslmode=verify-ca and verify-full need to know whom to trust: add \
                 sslrootcert=FILE, or sslrootcert=system for the authorities of this machine",
            ));
        }
        let path = |text: Option<String>| text.map(PathBuf::from);
        let (certificate, key) =
            (path(or(&self.sslcert, "PGSSLCERT")), path(or(&self.sslkey, "PGSSLKEY")));
        if certificate.is_some() != key.is_some() {
            return Err(StoreError::rejected(
                "sslcert= and sslkey= belong together: give both or neither",
            ));
        }
        Ok(TlsOptions { mode, root, certificate, key })
    }
}

/// Fills in what the URL left open.
fn complete(config: &mut Config, environment: Environment<'_>) -> Result<(), StoreError> {
    if config.get_hosts().is_empty() {
        let addresses = config.get_hostaddrs().to_vec();
        for address in &addresses {
            config.host(address.to_string());
        }
        if addresses.is_empty() {
            config.host(environment("PGHOST").unwrap_or_else(|| "localhost".to_owned()));
        }
    }
    if config.get_ports().is_empty()
        && let Some(port) = environment("PGPORT")
    {
        let number = port.parse().map_err(|_| unknown("PGPORT", &port, "a number"))?;
        config.port(number);
    }
    if config.get_user().is_none()
        && let Some(user) = environment("PGUSER").or_else(|| environment("USER"))
    {
        config.user(user);
    }
    if config.get_dbname().is_none()
        && let Some(database) = environment("PGDATABASE")
    {
        config.dbname(database);
    }
    if config.get_application_name().is_none() {
        let name = environment("PGAPPNAME").unwrap_or_else(|| "incumbent".to_owned());
        config.application_name(name);
    }
    // Half-open connections are found out in seconds instead of hours.
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(Duration::from_secs(10));
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(Duration::from_secs(3));
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(3);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(10));
    }
    Ok(())
}

/// Records are read from the primary alone, so of several hosts only one that takes writes will do.
fn only_primaries(config: &mut Config, session: Option<&str>) -> Result<(), StoreError> {
    match session {
        None | Some("any" | "read-write" | "primary") => {}
        Some(other) => {
            let known = "any, read-write or primary, because a standby can't hold leases";
            return Err(unknown("target_session_attrs", other, known));
        }
    }
    if config.get_hosts().len() > 1 || matches!(session, Some("read-write" | "primary")) {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    Ok(())
}

fn connect_timeout(config: &mut Config, environment: Environment<'_>) -> Duration {
    let variable = || environment("PGCONNECT_TIMEOUT").and_then(|text| text.parse().ok());
    let given = config.get_connect_timeout().copied();
    let given = given.or_else(|| variable().map(Duration::from_secs));
    let span = given.filter(|span| !span.is_zero()).unwrap_or(Duration::from_secs(5));
    config.connect_timeout(span);
    span
}

fn milliseconds(name: &str, value: &str) -> Result<u64, StoreError> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| unknown(name, value, &format!("milliseconds, such as {name}=1000")))
}

fn unknown(name: &str, value: &str, known: &str) -> StoreError {
    StoreError::rejected(format!("{name}={value} isn't understood: use {known}"))
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
