//! Clients that stand for every lease at both servers, and who of them was elected.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent::clock;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use crate::PATIENCE;
use crate::server::{Server, name};

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
    /// The hold of each server's client that waits, or has the lease.
    holds: Mutex<Vec<[Option<String>; 2]>>,
}

impl Elections {
    pub(crate) fn new(leases: usize) -> Self {
        let latest = Mutex::new(vec![Elected::default(); leases]);
        Self { latest, holds: Mutex::new(vec![[None, None]; leases]) }
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
                    elections.holds.lock().unwrap()[lease][number] = None;
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
            if line.starts_with("HTTP/1.1 ") {
                assert!(line.contains(" 200 ") || line.contains(" 503 "), "{line}");
            }
            // Between the lines are the sizes of chunks.
            if !line.starts_with('{') {
                continue;
            }
            let line: Value = serde_json::from_str(&line)?;
            match line["event"].as_str() {
                Some("waiting") => {
                    let hold = line["hold"].as_str().map(str::to_owned);
                    self.holds.lock().unwrap()[lease][number] = hold;
                }
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

    /// Waits until all leases are held by clients of one server, and those of the other wait for them. What is held
    /// elsewhere is given up there.
    pub(crate) async fn gather(&self, of: usize, servers: &[Server; 2]) {
        let end = clock::now() + PATIENCE;
        loop {
            let strays: Vec<(usize, Elected)> = self
                .terms()
                .into_iter()
                .enumerate()
                .filter(|(_, elected)| elected.term == 0 || elected.server != of)
                .collect();
            let all_stand = self.holds.lock().unwrap().iter().flatten().all(Option::is_some);
            if strays.is_empty() && all_stand {
                return;
            }
            assert!(clock::now() < end, "{} leases are not where they should be", strays.len());
            for (lease, elected) in strays.iter().filter(|(_, elected)| elected.term > 0) {
                let hold = self.holds.lock().unwrap()[*lease][elected.server].clone();
                if let Some(hold) = hold.filter(|_| all_stand) {
                    let _ = give_up(&servers[elected.server], &hold).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn give_up(server: &Server, hold: &str) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(&server.socket).await?;
    let head = format!(
        "DELETE /v1/holds/{hold} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = BufReader::new(stream).lines();
    answer.next_line().await?;
    Ok(())
}
