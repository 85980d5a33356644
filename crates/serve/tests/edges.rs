//! Requests that aren't as they should be.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use common::Server;
use serde_json::json;

const LONG: Duration = Duration::from_secs(600);

/// What a server says to these very bytes, after which nothing more comes.
fn said(server: &Server, bytes: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.tcp).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let _ = stream.read_to_string(&mut text);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text)
}

#[test]
fn headers_that_decide_are_there_once() {
    let server = Server::new(LONG);
    let asked = |name: &str, one: &str, other: &str| {
        let doubled = [(name, one), (name, other), ("connection", "close")];
        let headers: Vec<_> = doubled.to_vec();
        server.ask_with("PUT", "/v1/freeze", &headers, Some(json!({})))
    };
    for (name, one, other) in [
        ("host", "localhost", "evil.example"),
        ("host", "localhost", "localhost"),
        ("origin", "http://localhost", "https://evil.example"),
        ("sec-fetch-site", "same-origin", "cross-site"),
        ("authorization", "Bearer a", "Bearer b"),
        ("content-type", "application/json", "text/plain"),
    ] {
        let refused = asked(name, one, other);
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{name}");
        assert!(refused.text.contains(name) && refused.text.contains("send it once"), "{name}");
    }
    assert!(server.get("/v1/intents").json()["intents"].as_array().unwrap().is_empty());
}

#[test]
fn a_body_that_breaks_off_is_no_large_one() {
    let server = Server::new(LONG);
    let head = "PUT /v1/freeze HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                content-type: application/json\r\n";
    for (what, rest) in [
        ("short", "content-length: 100\r\n\r\n{}"),
        ("no size", "transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
        ("no end", "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    ] {
        let (status, text) = said(&server, &format!("{head}{rest}"));
        // Where nothing more can be said, the connection is closed without a word.
        assert!(status == 400 || text.is_empty(), "{what}: {text}");
        assert!(!text.contains("too-large"), "{what}: {text}");
    }
    assert!(server.get("/v1/intents").json()["intents"].as_array().unwrap().is_empty());
}

#[test]
fn questions_that_mean_nothing_are_refused() {
    let server = Server::new(LONG);
    for (path, value) in [
        ("/v1/plan?drain=x&cordon=y", "has both drain and cordon"),
        ("/v1/plan?drain=x&drain=y", "drain twice"),
        ("/v1/plan?drain=%00", "\"\\0\""),
        ("/v1/plan?undrain=%00", "\"\\0\""),
        ("/v1/plan?drain=", "node name is empty"),
        ("/v1/plan?cordon=%e2%80%8b", "node name is empty"),
        ("/v1/plan?move=work/a&to=%07", "\\u{7}"),
        ("/v1/plan?drain=%ff", "%ff"),
        ("/v1/history?lease=%ff", "%ff"),
        ("/v1/history?lease=a%0a", "control character"),
        ("/v1/history?duty=", "duty name is empty"),
    ] {
        let refused = server.get(path);
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{path}");
        let said = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(said.contains(value), "{path}: {said}");
    }
    for path in ["/v1/plan?drain=x", "/v1/plan", "/v1/history?lease=x", "/v1/history?duty=work"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
}

#[test]
fn names_that_nobody_can_see_are_refused() {
    let server = Server::new(LONG);
    for name in ["\u{202e}", "\u{200b}\u{200b}", "\u{feff} "] {
        let refused = server.ask("POST", "/v1/leases/x/acquire", Some(json!({ "name": name })));
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{name:?}");
    }
    let refused = server.ask("POST", "/v1/leases/%E2%80%AE/acquire", Some(json!({ "name": "a" })));
    assert_eq!(refused.status, 400);
}

/// Sends a hold and, before it is answered, another request; then it waits for its end.
const PIPELINING: &str = r#"
import socket, sys, time
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
body = sys.argv[3].encode()
client.sendall(b"POST " + sys.argv[2].encode() + b" HTTP/1.1\r\nhost: localhost\r\n"
               b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
               + b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
time.sleep(600)
"#;

/// What a client has sent ahead keeps the end of its connection from being read, and nobody from seeing its death.
#[test]
fn requests_that_were_sent_ahead_do_not_hide_the_death_of_a_client() {
    for on_close in ["wait", "ended"] {
        let server = Server::new(LONG);
        let body = json!({ "name": "a", "on_close": on_close });
        let mut client = pipelining(&server, "/v1/leases/scheduler/hold", &body);
        let leads = |name: &str| server.get("/?lease=scheduler").json()["name"] == name;
        common::wait_until("it leads", || leads("a"));
        let _second = server.hold_here("scheduler", json!({ "name": "b" }));
        client.kill().unwrap();
        client.wait().unwrap();
        // The next line that could not be sent comes in minutes.
        common::wait_until("the next leads", || leads("b"));
    }
}

#[test]
fn requests_that_were_sent_ahead_do_not_hide_the_death_of_who_serves() {
    for on_close in ["wait", "ended"] {
        let server = Server::new(LONG);
        let body = |name: &str| json!({ "name": name, "duties": ["one"], "on_close": on_close });
        let mut client = pipelining(&server, "/v1/families/projection/serve", &body("a"));
        let has = |name: &str| server.get("/v1/duties/projection%2Fone").json()["node"] == name;
        common::wait_until("it has the duty", || has("a"));
        let mut second = server.serve_here("projection", body("b"));
        client.kill().unwrap();
        client.wait().unwrap();
        assert_eq!(second.until("start")["duty"], "one");
    }
}

fn pipelining(server: &Server, path: &str, body: &serde_json::Value) -> std::process::Child {
    let arguments = ["-c", PIPELINING, server.unix.to_str().unwrap(), path, &body.to_string()];
    std::process::Command::new("python3").args(arguments).spawn().unwrap()
}

/// Who has won isn't told that nothing is held, however busy the server is.
#[test]
fn one_attempt_at_a_free_lease_wins_it() {
    let server = Server::new(LONG);
    std::thread::scope(|scope| {
        for thread in 0..12 {
            let server = &server;
            scope.spawn(move || {
                for number in 0..10 {
                    let path = format!("/v1/leases/{thread}-{number}/acquire");
                    let body = json!({ "name": "a", "wait": false });
                    let won = server.ask("POST", &path, Some(body));
                    assert_eq!(won.status, 201, "{}", won.text);
                    let ended = server.delete(common::text(&won.json(), "hold"));
                    // The store may take its time on a busy machine.
                    assert!(matches!(ended, 202 | 204), "{ended}");
                }
            });
        }
    });
}

/// The fields of an object by their order are nobody's request.
#[test]
fn a_body_that_is_no_object_is_refused() {
    let server = Server::new(LONG);
    let fields = json!(["a", null, null, null, false, null, null, null, null, null]);
    for (method, path, body) in [
        ("POST", "/v1/leases/x/acquire", fields),
        ("PUT", "/v1/freeze", json!([])),
        ("PUT", "/v1/freeze", json!(null)),
        ("PUT", "/v1/duties/work%2Fa/pin", json!(["a", false])),
    ] {
        let refused = server.ask(method, path, Some(body));
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{path}");
        assert!(refused.text.contains("JSON object"), "{}", refused.text);
    }
    assert!(server.get("/v1/intents").json()["intents"].as_array().unwrap().is_empty());
    let spaced =
        [("content-type", "application/json"), ("connection", "close"), ("host", "localhost")];
    let stream = TcpStream::connect(server.tcp).unwrap();
    let taken = common::ask(stream, "PUT", "/v1/freeze", &spaced, " \r\n\t{ }");
    assert_eq!(taken.status, 202, "{}", taken.text);
}

#[test]
fn what_would_spoil_a_screen_is_refused() {
    let server = Server::new(LONG);
    for (fields, said) in [
        (json!({ "labels": { "": "x" } }), "label name is empty"),
        (json!({ "labels": { "\u{200b}": "x" } }), "label name is empty"),
        (json!({ "labels": { "a\u{0}": "x" } }), "label name"),
        (json!({ "labels": { "zone": "\u{1b}[31m" } }), "the label \"zone\""),
        (json!({ "address": "a:80\r\nb" }), "the address"),
        (json!({ "payload": "\u{0}" }), "the payload"),
    ] {
        let mut body = json!({ "name": "a", "wait": false });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        for path in ["/v1/leases/x/hold", "/v1/leases/x/acquire"] {
            let refused = server.ask("POST", path, Some(body.clone()));
            assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{fields}");
            let detail = refused.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(said), "{fields}: {detail}");
        }
    }
    let body = json!({ "name": "a", "duties": ["b"], "labels": { "zone": "\n" } });
    assert_eq!(server.ask("POST", "/v1/families/projection/serve", Some(body)).status, 400);
    let body = json!({ "name": "a", "labels": { "zone": "" }, "payload": "{\"é\": 1}" });
    assert_eq!(server.ask("POST", "/v1/leases/x/acquire", Some(body)).status, 201);
}

#[test]
fn names_in_a_path_are_read_as_they_are_meant() {
    let server = Server::new(LONG);
    for (method, path, said) in [
        ("GET", "/v1/leases/%zz", "%zz"),
        ("GET", "/v1/leases/100%", "%25"),
        ("GET", "/v1/history?lease=%zz", "%zz"),
        ("PUT", "/v1/duties/x/pin", "the duty \"x\" has no family: name it as family/duty"),
        ("GET", "/v1/plan?move=x&to=b", "the duty \"x\" has no family: name it as family/duty"),
        ("GET", "/v1/duties/x/explain", "the duty \"x\" has no family: name it as family/duty"),
    ] {
        let body = (method == "PUT").then(|| json!({ "node": "a" }));
        let refused = server.ask(method, path, body);
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{path}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(said), "{path}: {detail}");
    }
    assert_eq!(server.get("/v1/leases/100%25").json()["lease"], "100%");
}

#[test]
fn o62_connections_that_are_reset_before_they_are_accepted_keep_nobody_waiting() {
    let server = Server::new(LONG);
    let resets = async {
        for _ in 0..400 {
            let stream = tokio::net::TcpStream::connect(server.tcp).await.unwrap();
            stream.set_zero_linger().unwrap();
        }
    };
    server.runtime().block_on(resets);
    let began = incumbent::clock::now();
    assert_eq!(server.get("/livez").status, 200);
    let took = incumbent::clock::now().since(began);
    // Each of them kept all others out for 50 ms before.
    assert!(took < Duration::from_secs(4), "{took:?}");
}
