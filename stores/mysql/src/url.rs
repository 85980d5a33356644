//! Reads `mysql://` and `mariadb://` URLs.

use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{
    Endpoint, Environment, Form, Options, StoreUrl, TlsFiles, TlsNames, misunderstood,
};

use crate::names::Names;
use crate::options::{MysqlOptions, SslMode, TlsOptions};

const PORT: u16 = 3306;

pub(crate) fn parse(text: &str, environment: Environment<'_>) -> Result<MysqlOptions, StoreError> {
    let url = StoreUrl::parse(text, Form::MYSQL, environment)?;
    let options = url.options()?;
    let database = url.path()?;
    if database.is_empty() || database.contains('\0') {
        return Err(url.malformed("it names no database"));
    }
    let user = url.user()?.filter(|user| !user.is_empty());
    let login = || environment("USER").filter(|user| !user.is_empty());
    Ok(MysqlOptions {
        // Without a host it is this machine.
        endpoint: match url.raw_hosts() {
            "" => Endpoint { host: "localhost".to_owned(), port: PORT },
            _ => url.endpoint(PORT)?,
        },
        socket: options.text("socket").map(str::to_owned),
        user: user.or_else(login).unwrap_or_else(|| "root".to_owned()),
        password: url.secret(&options, "MYSQL_PWD")?,
        database,
        access: Access::Full,
        names: Names::new(options.text("prefix").unwrap_or("incumbent_"))?,
        tls: tls(&options)?,
        connect_timeout: options.span("connect_timeout").unwrap_or(Duration::from_secs(10)),
        timeout: options.span("timeout").unwrap_or(Duration::from_secs(10)),
    })
}

fn tls(options: &Options) -> Result<TlsOptions, StoreError> {
    let tls = TlsOptions {
        mode: options.text("ssl-mode").map_or(Ok(SslMode::Preferred), mode)?,
        files: TlsFiles::read(options, TlsNames::MYSQL)?,
        hostname: options.text("ssl-hostname").map(str::to_owned),
    };
    if tls.mode == SslMode::Disabled && !tls.files.are_none() {
        return Err(StoreError::rejected(
            "ssl-mode=DISABLED and certificates contradict each other: use \
             ssl-mode=VERIFY_IDENTITY, or leave the certificates out",
        ));
    }
    Ok(tls)
}

fn mode(value: &str) -> Result<SslMode, StoreError> {
    Ok(match value.to_ascii_uppercase().replace('-', "_").as_str() {
        "DISABLED" => SslMode::Disabled,
        "PREFERRED" => SslMode::Preferred,
        "REQUIRED" => SslMode::Required,
        "VERIFY_CA" => SslMode::VerifyCa,
        "VERIFY_IDENTITY" => SslMode::VerifyIdentity,
        _ => {
            let known = "DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY";
            return Err(misunderstood("ssl-mode", value, known));
        }
    })
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
