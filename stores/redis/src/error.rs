//! What Redis's errors mean to a caller, and what to do about them.

use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_store_common::{Failure, Sent};
use redis::{RedisError, ServerError};

use crate::options::RedisOptions;

/// The next step that is followed by the command for it.
const RIGHTS: &str = "Give this user its rights";

/// What the server can say. The words stand at the beginning of its errors; Redis 6 puts those
/// that a script met somewhere inside.
const CODES: [(&str, ErrorKind, &str); 19] = [
    // A demoted primary (F20): the next connection may find the new one.
    (
        "READONLY",
        ErrorKind::Unavailable,
        "A primary is needed: name it, or wait until one is promoted",
    ),
    ("LOADING", ErrorKind::Unavailable, "The server is reading its data after a start"),
    (
        "MASTERDOWN",
        ErrorKind::Unavailable,
        "This is a replica that lost its primary: name the primary",
    ),
    ("CLUSTERDOWN", ErrorKind::Unavailable, ""),
    ("TRYAGAIN", ErrorKind::Unavailable, ""),
    ("BUSY", ErrorKind::Unavailable, "Somebody's script runs for too long: see SCRIPT KILL"),
    (
        "NOREPLICAS",
        ErrorKind::Unavailable,
        "The server has fewer replicas than its min-replicas-to-write",
    ),
    (
        "MISCONF",
        ErrorKind::Unavailable,
        "The server can't write its snapshot: see its log and its disk",
    ),
    (
        "OOM",
        ErrorKind::Unavailable,
        "The server's memory is full: raise its maxmemory, or remove keys from it",
    ),
    ("UNKILLABLE", ErrorKind::Unavailable, ""),
    ("NOSCRIPT", ErrorKind::Unavailable, ""),
    (
        "NOAUTH",
        ErrorKind::Rejected,
        "The server wants a password: put it into the URL, passwordfile= or REDISCLI_AUTH",
    ),
    (
        "WRONGPASS",
        ErrorKind::Rejected,
        "Check that the user and the password in the URL, passwordfile= or REDISCLI_AUTH are right",
    ),
    ("NOPERM", ErrorKind::Rejected, RIGHTS),
    (
        "DENIED",
        ErrorKind::Rejected,
        "The server takes no connections from other machines without a password: set one there",
    ),
    (
        "MOVED",
        ErrorKind::Rejected,
        "Redis Cluster isn't supported yet: name a server that runs without cluster-enabled",
    ),
    (
        "ASK",
        ErrorKind::Rejected,
        "Redis Cluster isn't supported yet: name a server that runs without cluster-enabled",
    ),
    (
        "CROSSSLOT",
        ErrorKind::Rejected,
        "Redis Cluster isn't supported yet: name a server that runs without cluster-enabled",
    ),
    (
        "WRONGTYPE",
        ErrorKind::Rejected,
        "Something else is kept under incumbent's keys: choose another prefix=",
    ),
];

/// What can be told from the text alone, for errors that share the word `ERR`.
const TEXTS: [(&str, ErrorKind, &str); 7] = [
    ("The user executing the script", ErrorKind::Rejected, RIGHTS),
    ("max number of clients", ErrorKind::Unavailable, "Raise the server's maxclients"),
    (
        "DB index is out of range",
        ErrorKind::Rejected,
        "Name a database that the server has, or raise its databases",
    ),
    (
        "SELECT is not allowed",
        ErrorKind::Rejected,
        "Redis Cluster isn't supported yet: name a server that runs without cluster-enabled",
    ),
    (
        "unknown command",
        ErrorKind::Rejected,
        "The server, or a proxy before it, doesn't offer this command: incumbent needs scripts (EVAL, EVALSHA)",
    ),
    (
        "without any password configured",
        ErrorKind::Rejected,
        "The server has no password: leave it out",
    ),
    (
        "not allowed from script",
        ErrorKind::Rejected,
        "The server, or a proxy before it, restricts scripts in a way that incumbent can't work with",
    ),
];

/// The server answered with an error.
pub(crate) fn said(options: &RedisOptions, error: &ServerError, sent: Sent) -> Failure {
    let code = error.code();
    let details = error.details().unwrap_or_default();
    let known = known(code, details);
    let kind = match (known, sent) {
        (Some((kind, _)), _) => kind,
        // The script tries all that it knows could fail before it writes. Of what it doesn't
        // know, a proxy's word for instance, nobody can tell what had been done by then.
        (None, sent) => sent.unanswered(),
    };
    let mut message = format!("{}: {code} {details}", options.server());
    match known {
        Some((_, RIGHTS)) => {
            message = format!("{}. {RIGHTS}: {}", message.trim_end_matches('.'), options.acl())
        }
        Some((_, step)) if !step.is_empty() => {
            message = format!("{}. {step}", message.trim_end_matches('.'))
        }
        _ => {}
    }
    let keep = matches!(code, "LOADING" | "BUSY" | "OOM" | "NOREPLICAS" | "MISCONF" | "WRONGTYPE");
    Failure { error: StoreError { kind, message }, keep }
}

/// The connection broke, or no answer came in time.
pub(crate) fn broken(options: &RedisOptions, error: &RedisError, sent: Sent) -> Failure {
    let kind = sent.unanswered();
    let why = if error.is_timeout() {
        format!("no answer within {} ms", options.timeout.as_millis())
    } else {
        error.to_string()
    };
    let message = format!("{}: {why}", options.server());
    Failure::fatal(StoreError { kind, message })
}

/// What came back makes no sense.
pub(crate) fn nonsense(options: &RedisOptions, sent: Sent) -> Failure {
    let kind = sent.unanswered();
    let message = format!(
        "{}: the answer isn't what incumbent's script gives. Check that there is a Redis server \
         and not something else",
        options.server()
    );
    Failure::fatal(StoreError { kind, message })
}

/// No connection could be made.
pub(crate) fn unreachable(options: &RedisOptions, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::unavailable(format!("{} can't be reached: {why}", options.server()))
}

fn known(code: &str, details: &str) -> Option<(ErrorKind, &'static str)> {
    let by_code = |word: &str| {
        let row = CODES.iter().find(|(code, _, _)| *code == word)?;
        Some((row.1, row.2))
    };
    let by_text = || {
        let row = TEXTS.iter().find(|(text, _, _)| details.contains(text))?;
        Some((row.1, row.2))
    };
    let inside = || {
        let words = details.split(|letter: char| !letter.is_ascii_uppercase());
        words.filter(|word| word.len() > 2).find_map(by_code)
    };
    by_code(code).or_else(by_text).or_else(inside)
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::ErrorKind;

    use super::known;

    #[test]
    fn words_are_found_wherever_the_server_puts_them() {
        let kind = |code, details| known(code, details).map(|(kind, _)| kind);
        assert_eq!(kind("READONLY", "You can't write"), Some(ErrorKind::Unavailable));
        // The forms of Redis 6.
        let inside = "Error running script (call to f_0a1): @user_script:25: @user_script: 25: \
                      -OOM command not allowed when used memory > 'maxmemory'.";
        assert_eq!(kind("ERR", inside), Some(ErrorKind::Unavailable));
        assert_eq!(kind("@user_script:", "25: -READONLY You can't"), Some(ErrorKind::Unavailable));
        assert_eq!(kind("ERR", "max number of clients reached"), Some(ErrorKind::Unavailable));
        assert_eq!(kind("ERR", "unknown command 'EVALSHA'"), Some(ErrorKind::Rejected));
        assert_eq!(kind("ERR", "upstream failure"), None);
    }
}
