//! A server as a process, and connections to it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

/// `incumbent serve`, which is killed with this.
pub(crate) struct Server {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Server {
    pub(crate) fn start(directory: &Path, number: usize) -> Self {
        let socket = directory.join(format!("socket-{number}"));
        let store = format!("sqlite:{}", directory.join("roles.db").display());
        let child = Command::new(env!("CARGO_BIN_EXE_incumbent"))
            .args(["--quiet", "--store", &store, "--cluster", "roles", "serve", "--ttl", "3s"])
            .args(["--node", &format!("server-{number}"), "--unix"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, socket }
    }

    pub(crate) async fn until_it_listens(&self) {
        for _ in 0..6_000 {
            if UnixStream::connect(&self.socket).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it doesn't listen");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// A connection for questions about roles, which the server knows already.
    pub(crate) async fn ask(&self) -> Asker {
        let mut asker = Asker(BufReader::new(UnixStream::connect(&self.socket).await.unwrap()));
        asker.send(std::iter::once(0)).await;
        asker.read().await;
        asker
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name of a lease.
pub(crate) fn name(lease: usize) -> String {
    format!("lease-{lease}")
}

/// Asks about roles, several at once if it likes.
pub(crate) struct Asker(BufReader<UnixStream>);

/// What the role endpoint says of a lease.
pub(crate) struct Role {
    status: u16,
    term: Option<u64>,
}

impl Asker {
    /// Sends questions without waiting for answers.
    pub(crate) async fn send(&mut self, leases: impl Iterator<Item = usize>) {
        let question =
            |lease| format!("GET /leader/{} HTTP/1.1\r\nhost: localhost\r\n\r\n", name(lease));
        let questions: String = leases.map(question).collect();
        self.0.write_all(questions.as_bytes()).await.unwrap();
    }

    /// The next answer.
    pub(crate) async fn read(&mut self) -> Role {
        let (mut line, mut length, mut status) = (String::new(), 0, None);
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).await.unwrap() > 0, "the connection has ended");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            status = status.or_else(|| line.strip_prefix("http/1.1 ")?.get(..3)?.parse().ok());
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let status = status.unwrap();
        assert!(status == 200 || status == 503, "{status}: {body}");
        Role { status, term: body["term"].as_u64() }
    }
}

impl Role {
    /// It is wrong if it says yes in an earlier term than the one that somebody was known to be elected for before
    /// the question was sent.
    pub(crate) fn check(&self, known: u64, lease: usize) {
        let yes = self.status == 200;
        assert!(
            !yes || self.term >= Some(known),
            "a wrong yes: {} in term {:?}, after somebody else was elected in term {known}",
            name(lease),
            self.term
        );
    }
}
