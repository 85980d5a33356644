//! What PostgreSQL's errors mean to a caller, and what to do about them.

use std::error::Error as _;

use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_store_common::{self as common, Sent, chain};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity};

use crate::options::PostgresOptions;

/// An error, and what it means for the connection.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: StoreError,
    /// Whether the connection is as good as before.
    pub(crate) keep: bool,
    /// Whether a row or a table was locked for too long.
    pub(crate) locked: bool,
}

impl From<Failure> for common::Failure {
    fn from(Failure { error, keep, .. }: Failure) -> Self {
        Self { error, keep }
    }
}

/// The error for a caller: the server, what happened, the next step.
pub(crate) fn translate(options: &PostgresOptions, error: &Error, sent: Sent) -> Failure {
    let server = options.server();
    let Some(said) = error.as_db_error() else {
        let kind = match sent {
            Sent::Nothing if is_setting(error) => ErrorKind::Rejected,
            Sent::Nothing => ErrorKind::Unavailable,
            // The connection broke, or what came back made no sense: it may have been applied.
            Sent::Write => ErrorKind::Unknown,
        };
        let message = format!("{server}: {}{}", told(error), step_of_connection(error));
        return Failure { error: StoreError { kind, message }, keep: false, locked: false };
    };
    let code = said.code().code();
    let aborted = is_aborted(said);
    let kind = match sent {
        Sent::Write if !aborted => ErrorKind::Unknown,
        Sent::Write | Sent::Nothing => kind_of(code),
    };
    let step = next_step(options, code).map_or(String::new(), |step| format!(". {step}"));
    let message = format!("{server}: {} (SQLSTATE {code}){step}", said.message());
    Failure {
        error: StoreError { kind, message },
        keep: aborted && keeps_connection(code),
        locked: aborted && code == "55P03",
    }
}

/// An error with all its causes, or the server's own words.
pub(crate) fn told(error: &Error) -> String {
    error.as_db_error().map_or_else(|| chain(error), |said| said.message().to_owned())
}

/// Whether the server took back the statement. An `ERROR` always means that. A `FATAL` ends the
/// session, perhaps between the commit and the word of it, and a pooler (class 08) knows nothing
/// of what became of the statement.
fn is_aborted(said: &DbError) -> bool {
    said.parsed_severity() == Some(Severity::Error) && !said.code().code().starts_with("08")
}

fn kind_of(code: &str) -> ErrorKind {
    match code {
        // The tables are gone, as after a restored backup. They are made again by the next
        // connection, or it says what is missing.
        "42P01" | "3F000" => ErrorKind::Unavailable,
        // Two servers may answer by turns while roles or the database are being restored, but
        // nobody should wait for that unawares.
        "3D000" | "0A000" | "26000" | "54000" | "54001" | "22021" | "22P05" => ErrorKind::Rejected,
        _ => match code.get(..2) {
            // Wrong password or no entry for this host; rights, columns, types; reserved names.
            Some("28" | "42" | "22") => ErrorKind::Rejected,
            // Among others: serialization failures and deadlocks (F21), a standby (F20), too many
            // connections, a full disk, a time-out of the server, a restart.
            _ => ErrorKind::Unavailable,
        },
    }
}

/// After these the same connection goes on. All others get a new one, which also finds a
/// promoted standby or the tables made anew.
fn keeps_connection(code: &str) -> bool {
    matches!(code, "40001" | "40P01" | "55P03" | "57014" | "53100" | "53200" | "54000" | "22021")
}

/// Whether what the URL says is why no connection was made.
fn is_setting(error: &Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<rustls::Error>() {
            return true;
        }
        // An I/O error hides its cause from `source`.
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        source = cause.source();
    }
    let text = error.to_string();
    let starts = ["authentication error", "invalid configuration", "invalid connection string"];
    starts.iter().any(|start| text.starts_with(start)) || told(error).contains("support TLS")
}

fn step_of_connection(error: &Error) -> &'static str {
    let text = told(error);
    if text.contains("support TLS") {
        ". Turn on TLS at the server, or use sslmode=prefer or sslmode=disable"
    } else if text.contains("TLS handshake") || text.contains("certificate") {
        ". Check that sslrootcert= names the authority that signed the server's certificate, and \
         that the certificate is valid for the host in the URL"
    } else if text.contains("password missing") {
        ". Give the password by PGPASSWORD, passwordfile= or a password file"
    } else if text.contains("does not allow writes") {
        ". A primary is needed: name it, or wait until one is promoted"
    } else {
        ""
    }
}

fn next_step(options: &PostgresOptions, code: &str) -> Option<String> {
    let user = options.user();
    Some(match code {
        "28P01" | "28000" => format!(
            "Check that the role {user} may log in from here: its password (PGPASSWORD, \
             passwordfile=, a password file) and the server's pg_hba.conf"
        ),
        "3D000" => "Make the database, or name another in the URL".to_owned(),
        "42501" => format!("Give the role {user} its rights:\n{}", options.grants_sql()),
        "42P01" | "3F000" => "The tables are gone; they are made again if that is allowed".into(),
        "42703" | "42804" | "42883" | "42P18" => {
            "The tables aren't as incumbent made them: choose another prefix= or schema=".into()
        }
        "26000" | "42P05" => {
            "A pooler hands out other connections unnoticed: add pooler=yes to the URL".to_owned()
        }
        "42939" => "Choose another schema=".to_owned(),
        "53300" => "Each process needs three connections: raise max_connections, or use a pooler"
            .to_owned(),
        "53100" => "Free some space on the server's disk".to_owned(),
        "25006" => "A primary is needed: name it, or wait until one is promoted".to_owned(),
        "55P03" => "Somebody held a lock for longer than lock_timeout=".to_owned(),
        "57014" => {
            "The server took longer than statement_timeout=, or somebody cancelled it".to_owned()
        }
        _ => return None,
    })
}
