//! Clients that stand for every lease at both servers, and who of them was elected.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent::clock;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use crate::server::Server;
use crate::{PATIENCE, name};

/// The latest election for a lease.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Elected {
    pub(crate) term: u64,
    /// Of which server the client is.
    pub(crate) server: usize,
}

/// All leases.
pub(crate) struct Elections {
    latest: Mutex<Vec<Elected>>,
    /// Whether each server's client waits for the lease, or has it.
    holds: Mutex<Vec<[bool; 2]>>,
}

impl Elections {
    pub(crate) fn new(leases: usize) -> Self {
        let latest = Mutex::new(vec![Elected::default(); leases]);
        Self { latest, holds: Mutex::new(vec![[false; 2]; leases]) }
    }

    /// The latest election of each lease, as its client was told.
    pub(crate) fn terms(&self) -> Vec<Elected> {
        self.latest.lock().unwrap().clone()
    }

    /// A client of this server stands for each lease from now on.
    pub(crate) fn stand(self: &Arc<Self>, number: usize, server: &Server) {
        let leases = self.latest.lock().unwrap().len();
        for lease in 0..leases {
            let (elections, socket) = (Arc::clone(self), server.socket.clone());
            tokio::runtime::Handle::current().spawn(async move {
                loop {
                    // It is over with the hold, and stands again.
                    let _ = elections.hold(number, lease, &socket).await;
                    elections.holds.lock().unwrap()[lease][number] = false;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    }

    /// One hold, to its end.
    async fn hold(&self, number: usize, lease: usize, socket: &PathBuf) -> std::io::Result<()> {
        let mut stream = UnixStream::connect(socket).await?;
        let body = json!({ "name": format!("client-{number}"), "ttl": "3s", "grace": "0s" });
        let body = body.to_string();
        let head = format!(
            "POST /v1/leases/{}/hold HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            name(lease),
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        let mut lines = BufReader::new(stream).lines();
        while let Some(line) = lines.next_line().await? {
            if line.starts_with("HTTP/1.1 ") && !line.contains(" 200 ") {
                assert!(line.contains(" 503 "), "{line}");
                return Ok(());
            }
            // Between the lines are the sizes of chunks.
            if !line.starts_with('{') {
                continue;
            }
            let line: Value = serde_json::from_str(&line)?;
            match line["event"].as_str() {
                Some("waiting") => self.holds.lock().unwrap()[lease][number] = true,
                Some("elected") => self.note(lease, number, line["term"].as_u64().unwrap()),
                Some("lost") => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn note(&self, lease: usize, server: usize, term: u64) {
        let latest = &mut self.latest.lock().unwrap()[lease];
        if term > latest.term {
            *latest = Elected { term, server };
        }
    }

    /// Waits until all leases were taken, and these servers' clients stand for all of them.
    pub(crate) async fn settle(&self, servers: &[usize]) {
        let end = clock::now() + PATIENCE;
        loop {
            let taken = self.terms().iter().filter(|elected| elected.term > 0).count();
            let stand = |holds: &[bool; 2]| servers.iter().all(|server| holds[*server]);
            let standing = self.holds.lock().unwrap().iter().filter(|it| stand(it)).count();
            let all = self.latest.lock().unwrap().len();
            if taken == all && standing == all {
                return;
            }
            assert!(clock::now() < end, "of {all} leases {taken} are taken, {standing} stood for");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
