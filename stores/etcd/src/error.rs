//! Says what a failed request means for the writes in it.
//!
//! etcd's own refusals are told by their text, because a proxy or the connection itself may fail
//! with the same code. What isn't known for sure is unknown.

use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_store_common::{Failure, Sent, chain};
use tonic::{Code, Status};

use crate::link::Unanswered;

/// What the server's words mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// It refused before it proposed anything, or when it applied nothing; what to do about it.
    Wrong(&'static str),
    /// It refused before it proposed anything, and may do otherwise soon.
    NotNow,
    /// The token is too old; a new one will do.
    Token,
    /// It may have applied the writes; what to do about it, if that is known.
    Unclear(&'static str),
}

/// The error that callers see, after a request with or without writes.
pub(crate) fn translate(place: &str, failure: &Unanswered, sent: Sent) -> Failure {
    let status = &failure.status;
    let said = said(status);
    let (kind, step) = match meaning(status) {
        Meaning::Wrong(step) => (ErrorKind::Rejected, step),
        Meaning::NotNow | Meaning::Token => (ErrorKind::Unavailable, ""),
        Meaning::Unclear(step) if failure.sent => (sent.unanswered(), step),
        Meaning::Unclear(step) => (ErrorKind::Unavailable, step),
    };
    let message = format!("{place}: {said}{}{step}", if step.is_empty() { "" } else { ". " });
    Failure { error: StoreError { kind, message }, keep: !means_trouble(failure) }
}

/// Whether the server wants another token.
pub(crate) fn is_about_token(failure: &Unanswered) -> bool {
    meaning(&failure.status) == Meaning::Token
}

/// Whether another connection, perhaps to another member, may fare better.
fn means_trouble(failure: &Unanswered) -> bool {
    let theirs = failure.status.message().starts_with("etcdserver: ");
    !theirs || failure.status.code() == Code::Unavailable
}

/// Each entry was looked up in the sources of etcd 3.4 to 3.7.
fn meaning(status: &Status) -> Meaning {
    let Some(text) = status.message().strip_prefix("etcdserver: ") else {
        return Meaning::Unclear("");
    };
    match (status.code(), text) {
        (Code::PermissionDenied, _) => Meaning::Wrong(
            "Grant the user's role the keys: etcdctl role grant-permission ROLE --prefix=true \
             readwrite PREFIX/",
        ),
        (Code::InvalidArgument, "user name is empty") => Meaning::Wrong(
            "It asks who you are: write etcd://user@host with passwordfile=FILE, or give a \
             client certificate with certfile= and keyfile=",
        ),
        (Code::InvalidArgument, "authentication failed, invalid user ID or password") => {
            Meaning::Wrong("Check that the user and the password are right")
        }
        (Code::InvalidArgument, "too many operations in txn request") => {
            Meaning::Wrong("Raise the server's --max-txn-ops to its default of 128")
        }
        (Code::InvalidArgument, "request is too large") => {
            Meaning::Wrong("Raise the server's --max-request-bytes to its default of 1.5 MiB")
        }
        (Code::InvalidArgument, "duplicate key given in txn request") => {
            Meaning::Wrong("One exchange can write a key only once")
        }
        (Code::Unauthenticated, _) => Meaning::Token,
        // When rights were changed since the token was made.
        (Code::InvalidArgument, "revision of auth store is old") => Meaning::Token,
        // Asked to (`hasleader`), a member looks for its leader before anything else.
        (Code::Unavailable, "no leader" | "not capable" | "rpc not supported for learner") => {
            Meaning::NotNow
        }
        (Code::ResourceExhausted, "too many requests") => Meaning::NotNow,
        // The write that crosses the quota is applied and then answered with this.
        (Code::ResourceExhausted, "mvcc: database space exceeded") => Meaning::Unclear(
            "Compact and defragment it, or raise --quota-backend-bytes, then run etcdctl alarm \
             disarm; and make sure that it compacts by itself (--auto-compaction-retention)",
        ),
        _ => Meaning::Unclear(""),
    }
}

fn said(status: &Status) -> String {
    // Without a text of the server's, the causes are in the sources.
    match status.message() {
        "" => chain(status),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: Code, text: &str, left: bool, sent: Sent) -> ErrorKind {
        let failure = Unanswered { status: Status::new(code, text), sent: left };
        translate("etcd at h:1", &failure, sent).error.kind
    }

    #[test]
    fn what_may_have_been_applied_is_unknown() {
        for (code, text) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unavailable, "etcdserver: server stopped"),
            (Code::Unavailable, "no leader"),
            (Code::Unavailable, "error reading from server: EOF"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            (Code::ResourceExhausted, "the stream was reset"),
            (Code::PermissionDenied, "says a proxy"),
            (Code::Unauthenticated, "says a proxy"),
            (Code::InvalidArgument, "etcdserver: something new"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Cancelled, "context canceled"),
            (Code::DataLoss, "etcdserver: corrupt cluster"),
            (Code::Unknown, "raft proposal dropped"),
            (Code::Internal, ""),
        ] {
            assert_eq!(kind(code, text, true, Sent::Write), ErrorKind::Unknown, "{code:?} {text}");
            // Nothing was written where nothing was to be, or where it never left.
            assert_eq!(
                kind(code, text, true, Sent::Nothing),
                ErrorKind::Unavailable,
                "{code:?} {text}"
            );
            assert_eq!(
                kind(code, text, false, Sent::Write),
                ErrorKind::Unavailable,
                "{code:?} {text}"
            );
        }
    }

    #[test]
    fn what_etcd_refused_is_not_applied() {
        for (code, text) in [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::Unavailable, "etcdserver: rpc not supported for learner"),
            (Code::ResourceExhausted, "etcdserver: too many requests"),
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
        ] {
            assert_eq!(
                kind(code, text, true, Sent::Write),
                ErrorKind::Unavailable,
                "{code:?} {text}"
            );
        }
    }

    #[test]
    fn a_wrong_set_up_is_rejected_with_the_next_step() {
        for (code, text, step) in [
            (Code::PermissionDenied, "etcdserver: permission denied", "grant-permission"),
            (Code::InvalidArgument, "etcdserver: user name is empty", "passwordfile"),
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
                "password",
            ),
            (Code::InvalidArgument, "etcdserver: too many operations in txn request", "max-txn"),
            (Code::InvalidArgument, "etcdserver: request is too large", "max-request"),
            (Code::InvalidArgument, "etcdserver: duplicate key given in txn request", "once"),
        ] {
            let failure = Unanswered { status: Status::new(code, text), sent: true };
            let error = translate("etcd at h:1", &failure, Sent::Write).error;
            assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
            assert!(error.message.contains("h:1") && error.message.contains(step), "{error}");
        }
    }
}
