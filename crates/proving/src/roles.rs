//! Questions about roles: whether a server says that a lease is held there.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

/// A connection to a server that can be asked several questions before the first is answered.
#[derive(Debug)]
pub struct RoleAsker(BufReader<UnixStream>);

/// What a server says of a lease.
#[derive(Debug)]
pub struct Role {
    lease: String,
    yes: bool,
    term: Option<u64>,
}

impl RoleAsker {
    /// Connects, and waits until the server has answered once.
    ///
    /// # Panics
    ///
    /// If it doesn't.
    #[must_use]
    pub fn connect(socket: &Path) -> Self {
        let mut asker = Self(BufReader::new(UnixStream::connect(socket).expect("it listens")));
        asker.send(["any".to_owned()]);
        let _ = asker.read();
        asker
    }

    /// Sends questions about these leases, without waiting for answers.
    ///
    /// # Panics
    ///
    /// If the connection is broken.
    pub fn send(&mut self, leases: impl IntoIterator<Item = String>) {
        let question = |lease| format!("GET /leader/{lease} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let questions: String = leases.into_iter().map(question).collect();
        self.0.get_mut().write_all(questions.as_bytes()).expect("a connection");
    }

    /// The next answer.
    ///
    /// # Panics
    ///
    /// If it is neither yes nor no.
    #[must_use]
    pub fn read(&mut self) -> Role {
        let (mut line, mut length, mut status) = (String::new(), 0, None);
        loop {
            line.clear();
            assert!(
                self.0.read_line(&mut line).expect("an answer") > 0,
                "the connection has ended"
            );
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().expect("a number");
            }
            status = status.or_else(|| line.strip_prefix("http/1.1 ")?.get(..3)?.parse().ok());
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("a document");
        let yes = match status {
            Some(200) => true,
            Some(503) => false,
            other => panic!("{other:?}: {body}"),
        };
        let lease = body.get("lease").and_then(Value::as_str).unwrap_or_default().to_owned();
        Role { lease, yes, term: body.get("term").and_then(Value::as_u64) }
    }
}

impl Role {
    /// A yes is wrong in an earlier term than the one that somebody was known to be elected for before the question
    /// was sent.
    ///
    /// # Panics
    ///
    /// If it is.
    pub fn check(&self, known: u64) {
        let Self { lease, yes, term } = self;
        assert!(
            !yes || *term >= Some(known),
            "a wrong yes: {lease} in term {term:?}, after somebody else was elected in term {known}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_in_an_earlier_term_is_wrong() {
        let role = |yes, term| Role { lease: "x".to_owned(), yes, term };
        role(true, Some(7)).check(7);
        role(true, Some(8)).check(7);
        role(false, Some(6)).check(7);
        for wrong in [Some(6), None] {
            let checked = std::panic::catch_unwind(|| role(true, wrong).check(7));
            assert!(checked.is_err(), "{wrong:?}");
        }
    }
}
