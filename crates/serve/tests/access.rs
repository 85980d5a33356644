//! Who gets in, and how much they may send.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use common::Server;
use incumbent::MemoryStore;
use incumbent_serve::{Access, Address, Listener, ServeError};
use serde_json::json;

const LONG: Duration = Duration::from_secs(600);
const OPERATOR: &str = "0123456789abcdef-operator";
const CLIENT: &str = "0123456789abcdef-client";
const READER: &str = "0123456789abcdef-reader";

fn guarded() -> Server {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        "# tokens\noperator alice {OPERATOR}\nclient shop {CLIENT}\nread-only board {READER}\n"
    );
    std::fs::write(file.path(), text).unwrap();
    let access = Access::open().with_token_file(file.path()).unwrap();
    Server::with(MemoryStore::new(), LONG, access)
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn tokens_open_what_their_role_allows() {
    let server = guarded();
    let ask = |token: &str, method: &str, path: &str, body| {
        server.ask_with(method, path, &[("authorization", &bearer(token))], body)
    };
    let none = server.get("/v1/leases");
    assert_eq!((none.status, none.code().as_str()), (401, "no-token"));
    assert_eq!(none.headers["www-authenticate"], "Bearer");
    for wrong in ["0123456789abcdef-operato", "0123456789abcdef-operatoR", "", "x"] {
        let refused = ask(wrong, "GET", "/v1/leases", None);
        assert_eq!(refused.status, 401, "{wrong}");
        assert!(wrong.is_empty() || !refused.text.contains("0123456789"), "{}", refused.text);
    }
    assert_eq!(ask(READER, "GET", "/v1/leases", None).status, 200);
    let hold = || Some(json!({ "name": "a", "wait": "10s" }));
    let refused = ask(READER, "POST", "/v1/leases/x/acquire", hold());
    assert_eq!((refused.status, refused.code().as_str()), (403, "not-allowed"));
    assert_eq!(ask(CLIENT, "POST", "/v1/leases/x/acquire", hold()).status, 201);
    assert_eq!(ask(CLIENT, "POST", "/v1/leases/x/resign", Some(json!({}))).status, 403);
    assert_eq!(ask(OPERATOR, "POST", "/v1/leases/x/resign", Some(json!({}))).status, 202);
    // The audit log names who, and no token.
    let audit = ask(READER, "GET", "/v1/audit", None);
    assert_eq!(audit.json()["acts"][0]["who"], "alice");
    assert!(!audit.text.contains("0123456789abcdef"));
    // Probes and load balancers have none.
    for path in ["/livez", "/readyz", "/leader/x", "/", "/openapi.json"] {
        assert_ne!(server.get(path).status, 401, "{path}");
    }
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("operator alice {OPERATOR}\n")).unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = Access::open().with_token_file(file.path()).unwrap_err().to_string();
    assert!(said.contains("others can read it") && !said.contains(OPERATOR), "{said}");
}

#[test]
fn it_does_not_listen_elsewhere_for_everybody() {
    let (open, guarded) = (Server::new(LONG), guarded());
    let elsewhere = Address::Tcp(([0, 0, 0, 0], 0).into());
    let bind = |server: &Server| {
        server.runtime().block_on(Listener::bind(&elsewhere, &server.service)).map(drop)
    };
    let refused = bind(&open).unwrap_err();
    assert!(matches!(refused, ServeError::Unsafe(_)));
    assert!(refused.to_string().contains("--token-file"), "{refused}");
    bind(&guarded).unwrap();
}

#[test]
fn another_name_for_this_host_is_refused() {
    let access = Access::open().with_host("incumbent.internal");
    let server = Server::with(MemoryStore::new(), LONG, access);
    let status = |host: &str| server.ask_with("GET", "/v1/cluster", &[("host", host)], None).status;
    for host in ["localhost", "LOCALHOST:7070", "127.0.0.1:1", "[::1]:7070", "incumbent.internal"] {
        assert_eq!(status(host), 200, "{host}");
    }
    for host in ["evil.example", "evil.example:7070", "localhost.evil.example", "10.0.0.1", ""] {
        assert_eq!(status(host), 421, "{host}");
    }
}

#[test]
fn other_sites_can_change_nothing() {
    let server = Server::new(LONG);
    let freeze =
        |headers: &[(&str, &str)]| server.ask_with("PUT", "/v1/freeze", headers, Some(json!({})));
    for headers in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
    ] {
        let refused = freeze(headers);
        assert_eq!((refused.status, refused.code().as_str()), (403, "cross-site"), "{headers:?}");
    }
    // A form can't say that it sends JSON.
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let refused = freeze(&[("content-type", kind)]);
        assert_eq!((refused.status, refused.code().as_str()), (415, "media-type"), "{kind}");
    }
    assert!(server.get("/v1/intents").json()["intents"].as_array().unwrap().is_empty());
    let own = [("origin", "http://localhost"), ("sec-fetch-site", "same-origin")];
    assert_eq!(freeze(&own).status, 202);
    let shown = server.ask_with("GET", "/v1/cluster", &[("origin", "https://evil.example")], None);
    assert!(!shown.headers.keys().any(|name| name.starts_with("access-control")));
}

#[test]
fn every_answer_has_the_headers_that_keep_browsers_in_check() {
    let server = Server::new(LONG);
    for path in ["/v1/leases", "/nothing/there", "/leader/x", "/v1/leases/x?after=y"] {
        let headers = server.get(path).headers;
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        let policy = &headers["content-security-policy"];
        assert!(policy.starts_with("default-src 'self'; frame-ancestors 'none'"), "{policy}");
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let server = Server::new(LONG);
    let large = json!({ "name": "x".repeat(70_000) });
    let refused = server.ask("POST", "/v1/leases/x/hold", Some(large));
    assert_eq!((refused.status, refused.code().as_str()), (413, "too-large"));
    let long = "x".repeat(40_000);
    let refused = server.ask_with("GET", "/v1/leases", &[("x-long", &long)], None);
    assert_eq!(refused.status, 431);
    let unknown = server.get("/v1/nothing");
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "not-found"));
    let method = server.ask("PATCH", "/v1/leases", None);
    assert_eq!((method.status, method.code().as_str()), (405, "method"));
    assert!(method.headers["allow"].contains("GET"));
    assert_eq!(server.get("/v1/leases?unknown=1").status, 400);
}

#[test]
fn no_more_streams_than_are_allowed_come_from_one_address() {
    let server = Server::new(LONG);
    let streams: Vec<_> = (0..common::STREAMS_EACH)
        .map(|_| {
            use std::io::{Read, Write};
            let mut stream = std::net::TcpStream::connect(server.tcp).unwrap();
            write!(stream, "GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            // It has its place once it is answered.
            let mut head = [0; 12];
            stream.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
            stream
        })
        .collect();
    let poll = || server.get("/v1/leases/x?after=0.free&wait=1ms");
    let polled = poll();
    assert_eq!((polled.status, polled.code().as_str()), (429, "too-many"));
    drop(streams);
    common::wait_until("places are given back", || poll().status == 200);
}

#[test]
fn a_server_that_only_shows_changes_nothing() {
    let server = Server::with(MemoryStore::new(), LONG, Access::open().read_only(true));
    assert_eq!(server.get("/v1/cluster").json()["read_only"], true);
    for (method, path) in [("PUT", "/v1/freeze"), ("POST", "/v1/leases/x/hold")] {
        let refused = server.ask(method, path, Some(json!({ "name": "a" })));
        assert_eq!((refused.status, refused.code().as_str()), (403, "not-allowed"), "{path}");
    }
}

/// What is at the path of a socket and is no socket is somebody's data.
#[test]
fn a_file_at_the_path_of_the_socket_is_left_alone() {
    let server = Server::new(LONG);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.db");
    std::fs::write(&path, "precious").unwrap();
    let address = incumbent_serve::Address::Unix(path.clone());
    let bound =
        server.runtime().block_on(incumbent_serve::Listener::bind(&address, &server.service));
    assert!(bound.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

/// Who ends removes its own socket, and not that of who listens there by now.
#[test]
fn the_socket_of_a_successor_is_left_alone() {
    let server = Server::new(LONG);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let bind = || {
        let address = Address::Unix(path.clone());
        server.runtime().block_on(Listener::bind(&address, &server.service)).unwrap()
    };
    let first = bind();
    std::fs::remove_file(&path).unwrap();
    let second = bind();
    drop(first);
    assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
    drop(second);
    assert!(!path.exists(), "its own is removed");
}
