//! What MySQL's errors mean to a caller, and what to do about them.

use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_store_common::{Failure, Sent};
use mysql_async::{DriverError, Error, IoError, ServerError};

use crate::options::MysqlOptions;

/// The error for a caller: the server, what happened, the next step.
pub(crate) fn translate(options: &MysqlOptions, error: &Error, sent: Sent) -> Failure {
    let server = options.server();
    let Error::Server(said) = error else {
        let kind = match sent {
            // The driver knew before it sent anything.
            _ if matches!(error, Error::Driver(DriverError::ConnectionClosed)) => {
                ErrorKind::Unavailable
            }
            Sent::Nothing if is_setting(error) => ErrorKind::Rejected,
            Sent::Nothing => ErrorKind::Unavailable,
            // The connection broke, or what came back made no sense: it may have been applied.
            Sent::Write => ErrorKind::Unknown,
        };
        let message = format!("{server}: {}{}", shown(error), step_of_connection(error));
        return Failure::fatal(StoreError { kind, message });
    };
    let kind = match sent {
        Sent::Write if !is_undone(said.code) => ErrorKind::Unknown,
        Sent::Write | Sent::Nothing => kind_of(said.code),
    };
    let step = next_step(options, said).map_or(String::new(), |step| format!(". {step}"));
    let message = format!("{server}: {} (error {}){step}", said.message, said.code);
    Failure { error: StoreError { kind, message }, keep: keeps_connection(said.code) }
}

/// Whether a row or a table was locked for too long.
pub(crate) fn is_locked(error: &Error) -> bool {
    matches!(error, Error::Server(said) if is_lock(said.code))
}

fn is_lock(code: u16) -> bool {
    matches!(code, 1205 | 3572)
}

/// Whether this error of a write says that the server took it back. Of all others, such as a
/// killed session, a shutdown or an error during the commit, nobody can be sure.
fn is_undone(code: u16) -> bool {
    // Locks and deadlocks, Galera's failed certification among them (F21).
    is_lock(code) || matches!(code, 1213 | 1020 | 1047)
        // A server that doesn't take writes (F20).
        || matches!(code, 1290 | 1792 | 1836 | 3100)
        // No space.
        || matches!(code, 1021 | 1114)
        // No rights, no such thing, or not understood.
        || matches!(code, 1044 | 1045 | 1046 | 1049 | 1054 | 1064 | 1142 | 1143 | 1146 | 1227)
        // Not to be stored so, or not to be logged so.
        || matches!(code, 1048 | 1153 | 1264 | 1364 | 1366 | 1406 | 1665)
}

fn kind_of(code: u16) -> ErrorKind {
    match code {
        // Wrong user, password, host, plugin or database.
        1044 | 1045 | 1049 | 1130 | 1251 | 1275 | 1524 | 1698 | 3118 | 3159 | 3955 => {
            ErrorKind::Rejected
        }
        // Rights, columns, syntax; values and modes that can't be.
        1054 | 1064 | 1142 | 1143 | 1227 | 1048 | 1153 | 1264 | 1286 | 1364 | 1366 | 1370
        | 1406 | 1665 => ErrorKind::Rejected,
        // Among others: deadlocks (F21), read-only servers (F20), too many connections, a full
        // disk, a restart, and tables that are gone: the next connection makes them again or says
        // what is missing.
        _ => ErrorKind::Unavailable,
    }
}

/// After these the same connection goes on. All others get a new one, which also finds a promoted
/// replica or the tables made anew.
fn keeps_connection(code: u16) -> bool {
    is_lock(code) || matches!(code, 1213 | 1020 | 1021 | 1114)
}

/// Whether what the URL says is why no connection was made.
fn is_setting(error: &Error) -> bool {
    match error {
        Error::Driver(
            DriverError::UnknownAuthPlugin { .. }
            | DriverError::MysqlOldPasswordDisabled
            | DriverError::CleartextPluginDisabled
            | DriverError::NoKeyFound
            | DriverError::NoClientSslFlagFromServer,
        )
        | Error::Io(IoError::Tls(_))
        | Error::Url(_) => true,
        // What rustls finds in a handshake comes as the cause of an I/O error.
        Error::Io(IoError::Io(error)) => {
            error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
        }
        Error::Driver(_) | Error::Other(_) | Error::Server(_) => false,
    }
}

/// The error without the driver's frame around it.
fn shown(error: &Error) -> String {
    match error {
        Error::Driver(error) => error.to_string(),
        Error::Io(IoError::Io(error)) => error.to_string(),
        Error::Io(IoError::Tls(error)) => format!("TLS: {error}"),
        Error::Other(_) | Error::Server(_) | Error::Url(_) => error.to_string(),
    }
}

fn step_of_connection(error: &Error) -> &'static str {
    match error {
        Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            " Turn on TLS at the server, or use ssl-mode=PREFERRED or ssl-mode=DISABLED"
        }
        Error::Driver(DriverError::UnknownAuthPlugin { .. }) => {
            " Let the user authenticate with caching_sha2_password or mysql_native_password"
        }
        error if is_setting(error) => {
            ". Check that ssl-ca= names the authority that signed the server's certificate, and \
             that the certificate is made out to the host in the URL, or to ssl-hostname="
        }
        _ => "",
    }
}

fn next_step(options: &MysqlOptions, said: &ServerError) -> Option<String> {
    let user = &options.user;
    Some(match said.code {
        1045 | 1698 => format!(
            "Check that the user {user} may log in from here: its password (URL, MYSQL_PWD, \
             passwordfile=) and its host"
        ),
        1044 => format!("Give the user {user} rights on the database {}", options.database),
        1049 => format!("Make the database {}, or name another in the URL", options.database),
        1142 | 1143 | 1227 | 1370 => {
            format!("Give the user {user} its rights:\n{}", options.grants_sql())
        }
        1130 => format!("Let the user {user} log in from this host"),
        1040 | 1203 | 1226 => {
            "Each process needs up to four connections: raise max_connections".to_owned()
        }
        1129 => "Run FLUSH HOSTS at the server, or mariadb-admin flush-hosts".to_owned(),
        1021 | 1114 => "Free some space on the server's disk".to_owned(),
        1290 | 1792 | 1836 | 3100 => {
            "A primary is needed: name it, or wait until one is promoted".to_owned()
        }
        1047 => "This node of the cluster isn't ready, or has lost its quorum".to_owned(),
        1205 | 3572 => "Somebody held a lock for longer than a second".to_owned(),
        1665 => "Set binlog_format to ROW or MIXED at the server".to_owned(),
        1054 => "The tables aren't as incumbent made them: choose another prefix=".to_owned(),
        1146 => "The tables are gone; they are made again if that is allowed".to_owned(),
        1286 => "incumbent needs the InnoDB engine: turn it on at the server".to_owned(),
        _ => return None,
    })
}
