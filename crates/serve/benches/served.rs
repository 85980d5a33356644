//! How quick a server is: the role endpoint beside idle streams, and the next holder after `kill -9`.
//!
//! `cargo bench -p incumbent-serve`; on a machine that does something else as well, the tails say more
//! about that.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "it ends with the first mistake"
)]

#[cfg(target_os = "linux")]
#[path = "../tests/common/mod.rs"]
mod common;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::take_overs();
    linux::roles();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    use incumbent::clock;
    use serde_json::json;

    use super::common::{Server, pass};

    const ROUNDS: usize = 200;
    const STREAMS: usize = 1000;
    const RATE: u32 = 2000;
    const LASTS: Duration = Duration::from_secs(5);

    /// From the kill of a holder's client to the line by which the next one is elected.
    pub(super) fn take_overs() {
        let server = Server::new(Duration::from_secs(15));
        let mut took = Vec::new();
        let mut holder = server.curl("scheduler", json!({ "name": "0" }));
        holder.until("elected");
        for round in 1..=ROUNDS {
            let mut next = server.curl("scheduler", json!({ "name": round.to_string() }));
            next.until("waiting");
            // It contends a moment after it says so.
            pass(Duration::from_millis(30));
            let began = clock::now();
            holder.child.kill().unwrap();
            next.until("elected");
            took.push(clock::now().since(began));
            holder = next;
        }
        report("kill -9 of the holder's curl to the next elected, ttl 15 s", took);
    }

    /// One connection that asks at a steady rate.
    pub(super) fn roles() {
        let server = Server::with_streams(STREAMS + 8);
        let mut hold = server.hold_here("scheduler", json!({ "name": "a", "ttl": "60s" }));
        hold.until("elected");
        let streams: Vec<TcpStream> = (0..STREAMS)
            .map(|_| {
                let mut stream = TcpStream::connect(server.tcp).unwrap();
                write!(stream, "GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
                stream
            })
            .collect();
        pass(Duration::from_secs(2));
        let mut stream = TcpStream::connect(server.tcp).unwrap();
        stream.set_nodelay(true).unwrap();
        let (began, mut took, mut buffer) = (clock::now(), Vec::new(), [0; 4096]);
        let interval = Duration::from_secs(1) / RATE;
        for number in 0.. {
            let due = began + interval * number;
            if clock::now().since(began) > LASTS {
                break;
            }
            while clock::now() < due {
                std::hint::spin_loop();
            }
            // Counted from when it was due, so that a slow answer isn't hidden by fewer questions.
            stream.write_all(b"GET /leader/scheduler HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            let read = stream.read(&mut buffer).unwrap();
            assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
            took.push(clock::now().since(due));
        }
        report(&format!("role, {RATE} a second beside {STREAMS} idle streams"), took);
        drop(streams);
    }

    fn report(what: &str, mut took: Vec<Duration>) {
        took.sort();
        let at = |share: usize| took[(took.len() * share / 1000).min(took.len() - 1)];
        println!(
            "{what}: {} of them, median {:?}, p99 {:?}, most {:?}",
            took.len(),
            at(500),
            at(990),
            at(999)
        );
    }
}
