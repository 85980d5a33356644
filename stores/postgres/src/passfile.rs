//! libpq's file of passwords, and how a password gets to the driver. It is looked up for each
//! connection, so that one that was changed is found without a restart.

use std::fs;
use std::path::Path;

use incumbent_core::store::StoreError;
use incumbent_store_common::{small_file, unreadable};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::options::PostgresOptions;

/// The driver's configuration with the password in it, if there is one.
pub(crate) fn fill(options: &PostgresOptions) -> Result<Config, StoreError> {
    let mut config = options.config.clone();
    if let Some(password) = options.password.read("passwordfile")? {
        config.password(password);
    } else if let Some(path) = &options.passfile
        // Like libpq: a file that is missing counts as empty, and one that others can read isn't
        // used.
        && let Some(text) = private(path)?
        && let Some(password) = matching(&text, &config)
    {
        config.password(password);
    }
    Ok(config)
}

fn private(path: &Path) -> Result<Option<String>, StoreError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(None) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if metadata.mode() & 0o077 != 0 {
            return Err(StoreError::rejected(format!(
                "the password file {} can be read by others: run chmod 600 on it",
                path.display()
            )));
        }
    }
    #[cfg(not(unix))]
    drop(metadata);
    small_file(path).map(Some).map_err(|error| unreadable("passfile", path, &error))
}

/// The password of the first line that fits one of the hosts.
fn matching(text: &str, config: &Config) -> Option<String> {
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let ports = config.get_ports();
    config.get_hosts().iter().enumerate().find_map(|(place, host)| {
        let port = ports.get(place).or(ports.first()).copied().unwrap_or(5432).to_string();
        let host = match host {
            Host::Tcp(name) => name.as_str(),
            #[cfg(unix)]
            Host::Unix(_) => "localhost",
        };
        let wanted = [host, &port, database, user];
        text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
            let fields = fields(line);
            let [host, port, database, user, password] = fields.as_slice() else { return None };
            let given = [host, port, database, user];
            let fits =
                given.iter().zip(wanted).all(|(given, wanted)| **given == "*" || **given == wanted);
            fits.then(|| password.clone())
        })
    })
}

/// Splits at colons; a backslash keeps the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let Some(last) = fields.last_mut() else { break };
        match letter {
            '\\' => last.extend(letters.next()),
            ':' => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let config: Config = "postgres://me@db:5433/app".parse().unwrap();
        let text =
            "# comment\nother:*:*:*:no\ndb:5432:*:*:no\ndb:*:app:me:p\\:w\\\\d\n*:*:*:*:late";
        assert_eq!(matching(text, &config).as_deref(), Some("p:w\\d"));
        assert_eq!(matching("db:5433:app:you:x", &config), None);
        assert_eq!(matching("", &config), None);
    }
}
