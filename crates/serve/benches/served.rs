//! How quick a server is: the role endpoint beside idle streams, and the next holder after `kill -9`.
//!
//! `cargo bench -p incumbent-serve --bench served`; on a machine that does something else as well, the tails say more
//! about that. It ends with an error if a figure misses what the project promises.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "it ends with the first mistake")]
#![allow(clippy::unwrap_used, missing_docs, reason = "it ends with the first mistake")]

#[cfg(target_os = "linux")]
#[path = "../tests/common/mod.rs"]
mod common;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let figures = [linux::take_overs_on_unix(), linux::take_overs_on_loopback(), linux::roles()];
    std::process::ExitCode::from(u8::from(figures.contains(&false)))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use incumbent::clock;
    use serde_json::json;

    use super::common::{Curl, Server, pass};

    const ROUNDS: usize = 200;
    const STREAMS: usize = 1000;
    const RATE: u32 = 2000;
    const LASTS: Duration = Duration::from_secs(5);

    /// What is promised of a take-over and of a role: the median, and the 99th of a hundred.
    const TAKE_OVER: Bounds = (Some(Duration::from_millis(20)), Duration::from_millis(100));
    const ROLE: Bounds = (None, Duration::from_millis(1));

    type Bounds = (Option<Duration>, Duration);

    /// A killed client on the Unix socket is known to be dead.
    pub(super) fn take_overs_on_unix() -> bool {
        let server = Server::new(Duration::from_secs(15));
        let hold = |name: usize| server.curl("scheduler", json!({ "name": name.to_string() }));
        take_overs("on the Unix socket", hold)
    }

    /// On TCP it is gone by its promise.
    pub(super) fn take_overs_on_loopback() -> bool {
        let server = Server::new(Duration::from_secs(15));
        take_overs("on loopback with on_close ended", |name| {
            let body = json!({ "name": name.to_string(), "on_close": "ended" });
            Curl::start_tcp(server.tcp, "leases/scheduler/hold", &body)
        })
    }

    /// From the kill of a holder's client to the line by which the next one is elected.
    fn take_overs(way: &str, hold: impl Fn(usize) -> Curl) -> bool {
        let mut took = Vec::new();
        let mut holder = hold(0);
        holder.until("elected");
        for round in 1..=ROUNDS {
            let mut next = hold(round);
            next.until("waiting");
            // It contends a moment after it says so.
            pass(Duration::from_millis(30));
            let began = clock::now();
            holder.child.kill().unwrap();
            next.until("elected");
            took.push(clock::now().since(began));
            holder = next;
        }
        let what = format!("kill -9 of the holder's curl to the next elected, {way}, ttl 15 s");
        report(&what, took, TAKE_OVER)
    }

    /// One connection that asks at a steady rate, beside streams whose server looks at its store now and then.
    pub(super) fn roles() -> bool {
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
        let requests = || server.requests.load(Ordering::Relaxed);
        // What the store is asked without any question about a role.
        let before = requests();
        pass(LASTS);
        let idle = requests() - before;
        let before = requests();
        let took = ask(&server);
        let (busy, questions) = (requests() - before, took.len());
        println!(
            "requests to the store in {LASTS:?}: {busy} beside {questions} questions, {idle} without"
        );
        // Both are looks by the clock, of which one more or less falls into the time. Not one in a hundred
        // questions may cause one; tests/looking.rs shows that exactly none does.
        assert!(busy <= idle + idle / 2 + 10, "questions about roles are asked of the store");
        drop(streams);
        report(&format!("role, {RATE} a second beside {STREAMS} idle streams"), took, ROLE)
    }

    fn ask(server: &Server) -> Vec<Duration> {
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
        took
    }

    /// Says how long it took, and whether that is as promised.
    fn report(what: &str, mut took: Vec<Duration>, (median, p99): Bounds) -> bool {
        took.sort();
        let at = |share: usize| took[(took.len() * share / 1000).min(took.len() - 1)];
        let kept = at(990) < p99 && median.is_none_or(|median| at(500) < median);
        println!(
            "{what}: {} of them, median {:?}, p99 {:?}, most {:?}: {}",
            took.len(),
            at(500),
            at(990),
            at(999),
            if kept { "as promised" } else { "NOT as promised" }
        );
        kept
    }
}
