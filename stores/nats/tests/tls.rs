//! Encrypted connections to a server with a certificate made here.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use common::{Server, apply, create, open};
use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_nats::NatsStore;
use incumbent_proving::{Authority, Proxy, Wire};

async fn refusal(url: &str) -> StoreError {
    NatsStore::connect(url).await.err().unwrap_or_else(|| panic!("{url} was accepted"))
}

#[tokio::test]
async fn only_a_trusted_server_is_talked_to() {
    let place = tempfile::tempdir().expect("a directory");
    let (ours, others) = (Authority::new(), Authority::new());
    let root = ours.save(place.path(), "root.pem").display().to_string();
    let wrong = others.save(place.path(), "wrong.pem").display().to_string();
    let (certificate, key) = ours.issue("localhost", place.path(), "server");
    let (own, own_key) = ours.issue("app", place.path(), "client");
    let files = |verify: bool| {
        format!(
            "jetstream {{ store_dir: \"DIRECTORY\" }}\n\
             tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {root:?}, verify: {verify} }}"
        )
    };
    let server = Server::with(&files(false));
    let url = |scheme: &str, host: &str, more: &str| {
        format!("{scheme}://{host}:{}?{more}", server.port())
    };
    let trusted = format!("cafile={root}");
    for scheme in ["tls", "nats"] {
        let store = open(&url(scheme, "localhost", &trusted)).await;
        apply(&store, create(&format!("lease/{scheme}"))).await;
        for more in [format!("cafile={wrong}"), String::new()] {
            let error = refusal(&url(scheme, "localhost", &more)).await;
            assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
            assert!(error.message.contains("cafile="), "{error}");
        }
    }
    let error = refusal(&url("tls", "127.0.0.1", &trusted)).await;
    assert_eq!(error.kind, ErrorKind::Rejected, "another name: {error}");
    let error = refusal(&url("tls", "localhost", "cafile=/nowhere.pem")).await;
    assert!(error.message.contains("/nowhere.pem"), "{error}");

    let server = Server::with(&files(true));
    let url = |more: &str| format!("tls://localhost:{}?{trusted}{more}", server.port());
    let with = format!("&certfile={}&keyfile={}", own.display(), own_key.display());
    apply(&open(&url(&with)).await, create("lease/client")).await;
    refusal(&url("")).await;
}

#[tokio::test]
async fn an_encrypted_connection_is_asked_for_even_where_the_server_has_none() {
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let url = format!("tls://localhost:{}?connect_timeout=500", proxy.port());
    // The server doesn't understand the handshake.
    let error = refusal(&url).await;
    assert_ne!(error.kind, ErrorKind::Unknown, "{error}");
    let traffic = proxy.quiet().await;
    assert_eq!(traffic.requests, 0, "nothing is sent in the clear: {traffic:?}");
    assert!(traffic.connections > 0 && traffic.bytes_up > 0, "it did try: {traffic:?}");
}

#[tokio::test]
async fn a_key_logs_in() {
    // The pair that the documentation of NATS shows.
    let users = "jetstream { store_dir: \"DIRECTORY\" }\n\
        authorization { users: [ { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] }";
    let server = Server::with(users);
    let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    let file = server.path().join("user.nk");
    std::fs::write(&file, format!("{seed}\n")).expect("a file");
    let store = open(&format!("{}?nkey={}", server.url(), file.display())).await;
    apply(&store, create("lease/a")).await;
    std::fs::write(&file, "something else\n").expect("a file");
    for name in ["nkey", "creds"] {
        let error = refusal(&format!("{}?{name}={}", server.url(), file.display())).await;
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        assert!(!error.message.contains("something else"), "{error}");
    }
}
