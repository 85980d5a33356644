//! What NATS' errors mean to a caller, and what to do about them.

use async_nats::{ConnectError, ConnectErrorKind};
use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_store_common::{Sent, chain};

use crate::api::ApiError;
use crate::bucket;
use crate::options::NatsOptions;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It was never sent.
    Unsent(String),
    /// It is too large for this server, and was never sent.
    TooLarge(String),
    /// Nobody listens there: no stream, no JetStream, or no leader just now.
    NobodyThere,
    /// The server refused to take the message.
    Denied(String),
    /// It was sent, and what became of it isn't known.
    Silence(String),
}

/// The error for a caller where no answer came.
pub(crate) fn unanswered(options: &NatsOptions, trouble: Trouble, sent: Sent) -> StoreError {
    let shown = options.shown();
    match trouble {
        Trouble::Unsent(why) => StoreError::unavailable(format!("{shown}: {why}")),
        Trouble::TooLarge(why) => StoreError::rejected(format!(
            "{shown}: {why}. Raise max_payload in the server's configuration"
        )),
        Trouble::NobodyThere => StoreError::unavailable(format!(
            "{shown}: nobody answers for the bucket. It is gone or has no leader just now, or \
             JetStream is off"
        )),
        Trouble::Denied(why) => denied(options, &why),
        Trouble::Silence(why) => {
            StoreError { kind: sent.unanswered(), message: format!("{shown}: {why}") }
        }
    }
}

/// The error for a caller where the server answered with one.
pub(crate) fn answered(options: &NatsOptions, error: &ApiError, sent: Sent) -> StoreError {
    let shown = options.shown();
    let ApiError { code, err_code, description } = error;
    let kind = match (sent, is_surely_undone(error)) {
        (Sent::Write, false) => ErrorKind::Unknown,
        _ => kind_of(error),
    };
    let step = next_step(*err_code).map_or(String::new(), |step| format!(". {step}"));
    let message = format!("{shown}: {description} (code {code}, error {err_code}){step}");
    StoreError { kind, message }
}

/// An answer that made no sense.
pub(crate) fn nonsense(options: &NatsOptions, sent: Sent) -> StoreError {
    let why = "an answer wasn't understood".to_owned();
    unanswered(options, Trouble::Silence(why), sent)
}

/// The error for a connection that didn't come to be.
pub(crate) fn unconnected(options: &NatsOptions, server: &str, error: &ConnectError) -> StoreError {
    let text = chain(error);
    let (kind, step) = match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => (
            ErrorKind::Rejected,
            ". Check that the login is right: user and password, token, creds= or nkey=",
        ),
        ConnectErrorKind::ServerParse => (ErrorKind::Rejected, ". Write host:port"),
        _ if is_tls(&text) => (
            ErrorKind::Rejected,
            ". Check that cafile= names the authority that signed the server's certificate, that \
             it is valid for the host in the URL, and that the server gets the client \
             certificate that it may ask for",
        ),
        ConnectErrorKind::Tls => (ErrorKind::Rejected, ""),
        ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => {
            (ErrorKind::Unavailable, ". Check that the server is running and can be reached")
        }
    };
    StoreError { kind, message: format!("{} at {server}: {text}{step}", options.shown()) }
}

/// What to do about a right that is missing.
pub(crate) fn denied(options: &NatsOptions, why: &str) -> StoreError {
    StoreError::rejected(format!(
        "{}: {why}. Give the user these rights:\n{}",
        options.shown(),
        bucket::permissions(options)
    ))
}

/// Errors that come before anything is stored. What else may come is taken for unknown, such as
/// a disk that failed half-way.
fn is_surely_undone(error: &ApiError) -> bool {
    match error.err_code {
        // The store failed, but at a limit, which is looked at first.
        10077 => error.description.contains("maximum"),
        // Insufficient resources; JetStream off, here or for the account; limits of the account;
        // message too large; no or another stream; sealed; headers; too many requests.
        10002 | 10003 | 10008 | 10023 | 10028 | 10035 | 10039 | 10047 | 10054 | 10059 | 10060
        | 10076 | 10097 | 10109 | 10167 => true,
        number => ApiError::WRONG_SEQUENCE.contains(&number),
    }
}

fn kind_of(error: &ApiError) -> ErrorKind {
    match error.err_code {
        // JetStream off for the account or the server; message larger than the stream takes; more
        // replicas than servers; sealed; subjects or names that clash; bad requests.
        10039 | 10076 | 10054 | 10074 | 10109 | 10065 | 10058 | 10025 | 10003 => {
            ErrorKind::Rejected
        }
        _ => ErrorKind::Unavailable,
    }
}

fn next_step(number: u32) -> Option<&'static str> {
    Some(match number {
        10039 => "Allow JetStream for this account, or log in to another",
        10076 => "Start the server with JetStream: nats-server -js, or jetstream {} in its file",
        10054 => "Raise the bucket's largest value: nats stream edit --max-msg-size=-1",
        10074 => "Use replicas=1 on a single server",
        10065 => "Another stream has the bucket's subjects: choose another bucket=",
        10023 | 10047 | 10002 | 10028 => "Give JetStream or the account more room",
        10077 => "Make room in the bucket: nats stream edit --max-bytes=-1 --max-msgs=-1",
        10008 => "JetStream is temporarily unavailable",
        _ => return None,
    })
}

fn is_tls(text: &str) -> bool {
    ["certificate", "handshake", "TLS", "tls"].iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(err_code: u32, description: &str) -> ApiError {
        ApiError { code: 500, err_code, description: description.to_owned() }
    }

    #[test]
    fn only_what_surely_did_not_happen_is_called_so() {
        let options = NatsOptions::new("a:4222");
        let kind = |error: &ApiError| answered(&options, error, Sent::Write).kind;
        assert_eq!(kind(&said(10077, "maximum bytes exceeded")), ErrorKind::Unavailable);
        assert_eq!(kind(&said(10077, "input/output error")), ErrorKind::Unknown);
        assert_eq!(kind(&said(10023, "insufficient resources")), ErrorKind::Unavailable);
        assert_eq!(kind(&said(10039, "not enabled for account")), ErrorKind::Rejected);
        assert_eq!(kind(&said(99999, "something new")), ErrorKind::Unknown);
        let silence = Trouble::Silence("no answer".to_owned());
        assert_eq!(unanswered(&options, silence.clone(), Sent::Write).kind, ErrorKind::Unknown);
        assert_eq!(unanswered(&options, silence, Sent::Nothing).kind, ErrorKind::Unavailable);
    }
}
