//! Holds over encrypted connections: the same rules as without encryption.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use incumbent::clock;
use serde_json::{Value, json};

use crate::common::{Lines, text};
use crate::stage::{Identity, Stage, Stream, Wants};

const SHORT: Duration = Duration::from_secs(3);

/// A hold by a process of its own.
struct Curl(Child, BufReader<std::process::ChildStdout>);

impl Curl {
    fn hold(stage: &Stage, identity: &Identity, version: &str, body: &Value) -> Self {
        let port = stage.server.tcp.port();
        let mut child = Command::new("curl")
            .args(["-sN", version, "--cacert", stage.path("ca.crt").to_str().unwrap()])
            .args(["--connect-to", &format!("localhost::{}", stage.server.tcp.ip())])
            .args(["--cert", identity.0.to_str().unwrap(), "--key", identity.1.to_str().unwrap()])
            .args(["-H", "content-type: application/json", "-d", &body.to_string()])
            .arg(format!("https://localhost:{port}/v1/leases/scheduler/hold"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self(child, lines)
    }

    fn until(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.1.read_line(&mut line).unwrap() > 0, "it ended before {event}");
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["event"] == event {
                return line;
            }
        }
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Curl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hold(stage: &Stage, body: &Value) -> Lines<Stream> {
    let stream = stage.connect(Some(&stage.identity("shop")));
    Lines::post(stream, "/v1/leases/scheduler/hold", body)
}

#[test]
fn a_killed_client_that_promised_to_end_first_is_followed_at_once() {
    for version in ["--http1.1", "--http2"] {
        let stage = Stage::new();
        let shop = stage.identity("shop");
        let body = json!({ "name": "a", "on_close": "ended" });
        let mut first = Curl::hold(&stage, &shop, version, &body);
        first.until("elected");
        let mut second = Curl::hold(&stage, &shop, version, &json!({ "name": "b" }));
        second.until("waiting");
        first.kill();
        // Nobody waits for a ttl of ten minutes.
        assert_eq!(second.until("elected")["term"], 2, "{version}");
    }
}

#[test]
fn a_farewell_is_the_end_too() {
    let stage = Stage::new();
    let mut second = None;
    let stream = stage.connect(Some(&stage.identity("shop")));
    let mut stream = begin(stream, &json!({ "name": "a", "on_close": "ended" }), || {
        let mut waiting = hold(&stage, &json!({ "name": "b" }));
        waiting.until("waiting");
        second = Some(waiting);
    });
    stream.conn.send_close_notify();
    stream.flush().unwrap();
    assert_eq!(second.unwrap().until("elected")["term"], 2);
    drop(stream);
}

/// Holds the lease on this connection; does something; gives the connection back.
fn begin(mut stream: Stream, body: &Value, then: impl FnOnce()) -> Stream {
    let body = body.to_string();
    let head = "POST /v1/leases/scheduler/hold HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(&mut stream);
    while !line.contains("\"elected\"") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    then();
    stream
}

#[test]
fn a_killed_client_that_promised_nothing_is_trusted_until_what_it_was_told_has_run_out() {
    let stage = Stage::wanting(&Wants { ttl: Some(SHORT), ..Wants::default() });
    let shop = stage.identity("shop");
    let mut first = Curl::hold(&stage, &shop, "--http1.1", &json!({ "name": "a" }));
    let elected = first.until("elected");
    let mut second = hold(&stage, &json!({ "name": "b" }));
    second.until("waiting");
    let asked = clock::now();
    let path = format!("/v1/holds/{}/trust", text(&elected, "hold"));
    let told = stage.ask(Some(&shop), "POST", &path, &[], Some(json!({ "nonce": "x" }))).json();
    let until = asked + Duration::from_millis(told["trusted_for_ms"].as_u64().unwrap());
    first.kill();
    assert!(clock::now() < until, "the test was too slow to show anything: {told}");
    second.until("elected");
    assert!(clock::now() >= until, "it was freed while its client might have trusted");
}

/// What was only taken by the server's side of the encryption was read by nobody.
#[test]
fn a_client_that_is_not_heard_of_is_told_to_stop() {
    let stage = Stage::wanting(&Wants { ttl: Some(SHORT), ..Wants::default() });
    let mut silent = hold(&stage, &json!({ "name": "a", "grace": "1s" }));
    silent.until("elected");
    assert_eq!(silent.until("stopping")["why"], "unheard");
    assert_eq!(silent.until("lost")["why"], "unheard");
}
