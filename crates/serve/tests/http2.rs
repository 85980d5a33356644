//! HTTP/2 with prior knowledge: the same answers, and a stream that is reset proves nothing.
#![cfg(target_os = "linux")]
#![allow(clippy::indexing_slicing, clippy::panic, reason = "this is test code")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use common::{Server, text};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use incumbent::{Moment, clock};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(3);

/// A connection to the Unix socket.
async fn connect(server: &Server) -> SendRequest<Body> {
    let stream = tokio::net::UnixStream::connect(&server.unix).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    server.runtime().handle().spawn(async move {
        let _ = connection.await;
    });
    sender
}

fn post(path: &str, body: &Value) -> Request<Body> {
    Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}

/// Reads lines until one is about this.
async fn until(body: &mut Incoming, event: &str) -> Value {
    let mut text = String::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
        let Ok(data) = frame.unwrap().into_data() else { continue };
        text.push_str(std::str::from_utf8(&data).unwrap());
        while let Some((line, rest)) = text.split_once('\n') {
            let line: Value = serde_json::from_str(line).unwrap();
            text = rest.to_owned();
            if line["event"] == event {
                return line;
            }
        }
    }
    panic!("the stream ended before {event}");
}

/// Until when a client may trust by its file.
fn told(elected: &Value) -> impl Fn() -> Moment + use<> {
    let file = std::fs::File::open(text(elected, "trust_file")).unwrap();
    move || {
        let mut bytes = [0; 8];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 8).unwrap();
        Moment::from_nanos(u64::from_le_bytes(bytes))
    }
}

#[test]
fn a_reset_stream_frees_nothing_while_told_trust_lasts() {
    let server = Server::new(SHORT);
    let (reset_at, elected_at, told) = server.runtime().block_on(async {
        let mut sender = connect(&server).await;
        let body = json!({ "name": "a", "on_close": "ended" });
        let request = post("/v1/leases/scheduler/hold", &body);
        let mut first = sender.send_request(request).await.unwrap().into_body();
        let told = told(&until(&mut first, "elected").await);
        // On the same connection, as its other streams go on.
        let request = post("/v1/leases/scheduler/hold", &json!({ "name": "b" }));
        let mut second = sender.send_request(request).await.unwrap().into_body();
        until(&mut second, "waiting").await;
        let last = told();
        drop(first);
        let reset_at = clock::now();
        until(&mut second, "elected").await;
        (reset_at, clock::now(), last)
    });
    assert!(reset_at < told, "the test was too slow to show anything");
    assert!(elected_at >= told, "it was freed while its client might have trusted");
}

#[test]
fn a_client_that_dies_is_followed_at_once() {
    let server = Server::new(LONG);
    let start = |name: &str| {
        let body = json!({ "name": name }).to_string();
        std::process::Command::new("curl")
            .args([
                "-sN",
                "--http2-prior-knowledge",
                "--unix-socket",
                server.unix.to_str().unwrap(),
            ])
            .args(["-X", "POST", "http://localhost/v1/leases/scheduler/hold"])
            .args(["-H", "content-type: application/json", "-d", &body])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let leads = |name: &str| server.get("/?lease=scheduler").json()["name"] == name;
    let mut first = start("a");
    common::wait_until("the first leads", || leads("a"));
    let mut second = start("b");
    first.kill().unwrap();
    first.wait().unwrap();
    // Nobody waits for a ttl of ten minutes.
    common::wait_until("the second leads", || leads("b"));
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn the_host_is_judged_there_too() {
    let server = Server::new(LONG);
    let status = |host: &[&str]| {
        let url = format!("http://{}/v1/cluster", server.tcp);
        let asked = std::process::Command::new("curl")
            .args(["-s", "--http2-prior-knowledge", "-o", "/dev/null", "-w"])
            .args(["%{http_version} %{http_code}"])
            .args(host)
            .arg(url)
            .output()
            .unwrap();
        String::from_utf8(asked.stdout).unwrap()
    };
    assert_eq!(status(&[]), "2 200");
    assert_eq!(status(&["-H", "host: localhost"]), "2 200");
    assert_eq!(status(&["-H", "host: evil.example"]), "2 421");
}
