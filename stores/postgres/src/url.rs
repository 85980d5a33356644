//! Reads `postgres://` URLs: libpq's own parameters, and incumbent's.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{
    Environment, Form, Options, Secret, StoreUrl, TlsFiles, TlsNames, encoded, misunderstood,
};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use crate::error::told;
use crate::names::Names;
use crate::options::{Pooler, PostgresOptions, TlsMode, TlsOptions};

/// What the driver doesn't know.
const OWN: [&str; 12] = [
    "schema",
    "prefix",
    "passwordfile",
    "passfile",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "target_session_attrs",
    "lock_timeout",
    "statement_timeout",
    "pooler",
];

/// What libpq knows and what changes nothing here.
const HARMLESS: [&str; 3] = ["client_encoding", "fallback_application_name", "gssencmode"];

/// What libpq knows and what would be expected to change something.
const UNSUPPORTED: [&str; 4] = ["sslpassword", "sslcrl", "sslcrldir", "require_auth"];

pub(crate) fn parse(
    text: &str,
    environment: Environment<'_>,
) -> Result<PostgresOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::POSTGRES, environment)?;
    let options = url.options()?;
    let mut config = driver(&url, &options)?;
    complete(&mut config, environment)?;
    only_primaries(&mut config, options.text("target_session_attrs"))?;
    let (password, passfile) = password(&mut config, &options, environment)?;
    let (schema, prefix) = (options.text("schema"), options.text("prefix"));
    let parsed = PostgresOptions {
        names: Names::new(schema.unwrap_or("public"), prefix.unwrap_or("incumbent_"))?,
        password,
        passfile,
        tls: tls(&options, environment)?,
        connect_timeout: connect_timeout(&mut config, environment),
        lock_timeout: options.span("lock_timeout").unwrap_or(Duration::from_secs(1)),
        statement_timeout: options.span("statement_timeout").unwrap_or(Duration::from_secs(10)),
        pooler: match options.chose("pooler", "yes") {
            Some(true) => Pooler::Yes,
            Some(false) | None => Pooler::Detect,
        },
        access: Access::Full,
        config,
    };
    Ok(parsed)
}

/// What the driver knows, written anew, so that it can't take it apart in another way.
fn driver(url: &StoreUrl<'_>, options: &Options) -> Result<Config, StoreError> {
    let mut rest = Vec::new();
    for (name, value) in options.iter() {
        if UNSUPPORTED.contains(&name) {
            return Err(StoreError::rejected(format!(
                "{name}= isn't supported in the PostgreSQL URL: leave it out{}",
                if name == "sslpassword" { " and give a key without a password" } else { "" }
            )));
        }
        let meant = name == "ssl" && value == "true";
        if !meant && !OWN.contains(&name) && !HARMLESS.contains(&name) {
            rest.push(format!("{name}={}", encoded(value)));
        }
    }
    let login = match (url.user()?, url.password()?) {
        (Some(user), Some(password)) => format!("{}:{}@", encoded(&user), encoded(&password)),
        (Some(user), None) => format!("{}@", encoded(&user)),
        (None, _) => String::new(),
    };
    let (hosts, path) = (url.raw_hosts(), encoded(&url.path()?));
    let written = format!("postgres://{login}{hosts}/{path}?{}", rest.join("&"));
    written.parse().map_err(|error| url.malformed(&told(&error)))
}

/// Where the password is, unless the configuration has it: in a file that holds nothing else, or in
/// one of libpq's form.
fn password(
    config: &mut Config,
    options: &Options,
    environment: Environment<'_>,
) -> Result<(Secret, Option<PathBuf>), StoreError> {
    match (options.file("passwordfile"), config.get_password()) {
        (Some(_), Some(_)) => {
            return Err(StoreError::rejected(
                "the URL of PostgreSQL has a password and passwordfile=: keep one",
            ));
        }
        (Some(path), None) => return Ok((Secret::File(path), None)),
        (None, Some(_)) => return Ok((Secret::None, None)),
        (None, None) => {}
    }
    let passfile = options.file("passfile");
    if passfile.is_none()
        && let Some(password) = environment("PGPASSWORD")
    {
        config.password(password);
        return Ok((Secret::None, None));
    }
    let variable = || environment("PGPASSFILE").map(PathBuf::from);
    let home = || environment("HOME").map(|home| PathBuf::from(home).join(".pgpass"));
    Ok((Secret::None, passfile.or_else(variable).or_else(home)))
}

fn tls(options: &Options, environment: Environment<'_>) -> Result<TlsOptions, StoreError> {
    let or = |name: &str, variable: &str| {
        options.text(name).map(str::to_owned).or_else(|| environment(variable))
    };
    let encrypted = || options.chose("ssl", "true")?.then(|| "require".to_owned());
    let mode = options.text("sslmode").map(str::to_owned).or_else(encrypted);
    let mode = mode.or_else(|| environment("PGSSLMODE")).unwrap_or_else(|| "prefer".to_owned());
    let mode = match mode.as_str() {
        "disable" => TlsMode::Disable,
        "allow" | "prefer" => TlsMode::Prefer,
        "require" => TlsMode::Require,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" => TlsMode::VerifyFull,
        _ => {
            let known = "disable, prefer, require, verify-ca or verify-full";
            return Err(misunderstood("sslmode", &mode, known));
        }
    };
    let root = or("sslrootcert", "PGSSLROOTCERT");
    if mode >= TlsMode::VerifyCa && root.is_none() {
        return Err(StoreError::rejected(
            "sslmode=verify-ca and verify-full need to know whom to trust: add \
             sslrootcert=FILE, or sslrootcert=system for the authorities of this machine",
        ));
    }
    let files = TlsFiles::find(TlsNames::LIBPQ, |name| match name {
        "sslcert" => or(name, "PGSSLCERT").map(PathBuf::from),
        "sslkey" => or(name, "PGSSLKEY").map(PathBuf::from),
        _ => root.as_ref().filter(|root| *root != "system").map(PathBuf::from),
    })?;
    Ok(TlsOptions { mode, rooted: root.is_some(), files })
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
        let number = port.parse().map_err(|_| misunderstood("PGPORT", &port, "a number"))?;
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

/// Records are read from the primary alone, so of several hosts only one that takes writes is used.
fn only_primaries(config: &mut Config, session: Option<&str>) -> Result<(), StoreError> {
    match session {
        None | Some("any" | "read-write" | "primary") => {}
        Some(other) => {
            let known = "any, read-write or primary, because a standby can't hold leases";
            return Err(misunderstood("target_session_attrs", other, known));
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

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
