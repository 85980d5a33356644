//! Passwords, rights and TLS.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::path::Path;

use common::{CLUSTER, Hints, Server, applied, create, eventually, open, write};
use incumbent_core::store::{Access, ErrorKind, Key, Store, Write};
use incumbent_proving::Authority;
use incumbent_redis::{RedisOptions, RedisStore};
use redis::Value;

#[tokio::test]
async fn passwords_are_asked_for_and_never_shown() {
    let server = Server::start(&[]);
    server.command(&["ACL", "SETUSER", "app", "on", ">s3cret@/?#", "~*", "&*", "+@all"]);
    server.command(&["CONFIG", "SET", "requirepass", "s3cret"]);
    let port = server.port();
    for (url, step) in [
        (format!("redis://127.0.0.1:{port}"), "REDISCLI_AUTH"),
        (format!("redis://127.0.0.1:{port}/2"), "REDISCLI_AUTH"),
        (format!("redis://:s3cretly@127.0.0.1:{port}"), "user and the password"),
        (format!("redis://app:s3cretly@127.0.0.1:{port}"), "user and the password"),
        (format!("redis://nobody:s3cretly@127.0.0.1:{port}"), "user and the password"),
    ] {
        let error = RedisStore::connect(&url).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        assert!(error.message.contains(step), "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    let store = open(&format!("redis://app:s3cret%40%2F%3F%23@127.0.0.1:{port}/2")).await;
    assert_eq!(write(&store, create("a", 1)).await, Ok(applied(1)));
    assert!(!format!("{store:?} {:?}", store.options()).contains("s3cret"), "{store:?}");
    let hints = Hints::of(&store, CLUSTER);
    eventually("a login for hints", || hints.count() > 0).await;
}

#[tokio::test]
async fn a_password_file_is_read_again_for_each_connection() {
    let server = Server::start(&[]);
    let path = server.path().join("password");
    std::fs::write(&path, "first\n").unwrap();
    set_password(&server, "first");
    let url = format!("redis://app@127.0.0.1:{}?passwordfile={}", server.port(), path.display());
    let store = open(&url).await;
    write(&store, create("a", 1)).await.unwrap();
    set_password(&server, "second");
    server.cut();
    common::pause(100).await;
    let error = write(&store, create("b", 1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    std::fs::write(&path, "second").unwrap();
    assert_eq!(write(&store, create("b", 1)).await, Ok(applied(1)));
    std::fs::remove_file(&path).unwrap();
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert!(error.message.contains("passwordfile="), "{error}");
}

fn set_password(server: &Server, password: &str) {
    let password = format!(">{password}");
    server.command(&["ACL", "SETUSER", "app", "reset", "on", &password, "~*", "&*", "+@all"]);
}

#[tokio::test]
async fn the_least_rights_are_enough_and_less_is_rejected() {
    let server = Server::start(&[]);
    let url = format!("redis://least:secret@127.0.0.1:{}/1?prefix=app", server.port());
    let acl = RedisOptions::parse(&url).unwrap().acl();
    let acl = acl.replace(['\''], "").replace("PASSWORD", "secret");
    let words: Vec<&str> = acl.split(' ').collect();
    assert_eq!(server.command(&words), Value::Okay, "{acl}");
    let store = open(&url).await;
    assert_eq!(write(&store, create("a", 1)).await, Ok(applied(1)));
    assert_eq!(common::list(&store, "").await.len(), 1);
    let hints = Hints::of(&store, CLUSTER);
    eventually("a subscription", || hints.count() > 0).await;
    // What it doesn't need it can't do.
    let denied = common::operator(&url.replace("?prefix=app", ""), &["GET", "{app:x}"]);
    assert!(format!("{denied:?}").contains("NOPERM"), "{denied:?}");

    let delete = || Write::Delete(Key::new("a"));
    for (right, attempt) in [
        ("-evalsha", create("b", 1)),
        ("-hset", create("b", 1)),
        ("-hmget", create("b", 1)),
        ("-zadd", create("b", 1)),
        ("-time", create("b", 1)),
        ("-zrem", delete()),
        ("-hdel", delete()),
    ] {
        server.command(&["ACL", "SETUSER", "least", right]);
        let error = write(&store, attempt).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{right}: {error}");
        assert!(error.message.contains("ACL SETUSER least"), "{right}: {error}");
        server.command(&["ACL", "SETUSER", "least", &right.replace('-', "+")]);
        let there: Vec<_> = common::list(&store, "").await;
        assert_eq!(there.len(), 1, "{right}: nothing was created or deleted");
    }
    for right in ["-publish", "-eval", "resetkeys", "resetchannels"] {
        server.command(&["ACL", "SETUSER", "least", right]);
        let error = RedisStore::connect(&url).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{right}: {error}");
        assert!(error.message.contains("+publish"), "{right}: {error}");
        server.command(&words);
    }
    // Settings that may not be read promise nothing.
    server.command(&["ACL", "SETUSER", "least", "-config|get"]);
    assert!(!open(&url).await.capabilities().durable);
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn tls_is_checked_on_both_sides() {
    let place = tempfile::tempdir().unwrap();
    certificates(place.path());
    let at = |name: &str| place.path().join(name).display().to_string();
    let port = incumbent_proving::server::free_port();
    let (ca, cert, key) = (at("ca.pem"), at("both.crt"), at("both.key"));
    let _server = Server::start(&[
        "--tls-port",
        &port.to_string(),
        "--tls-ca-cert-file",
        &ca,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-auth-clients",
        "yes",
    ]);
    let base = format!("rediss://localhost:{port}");
    let client = format!("certfile={cert}&keyfile={key}");
    let store = open(&format!("{base}?cafile={ca}&{client}")).await;
    assert_eq!(write(&store, create("a", 1)).await, Ok(applied(1)));
    let hints = Hints::of(&store, CLUSTER);
    eventually("hints over TLS", || hints.count() > 0).await;
    for (url, step) in [
        (format!("{base}?{client}"), "cafile="),
        (format!("{base}?cafile={ca}"), "certfile="),
        (format!("{}?cafile={ca}&{client}", base.replace("localhost", "127.0.0.1")), "valid for"),
        (format!("{base}?cafile={}&{client}", at("none.pem")), "PEM file"),
        (format!("{base}?cafile={ca}&certfile={cert}&keyfile={cert}"), "keyfile="),
        (format!("rediss://localhost:{}?cafile={ca}", _server.port()), "speaks TLS"),
    ] {
        let error = RedisStore::connect(&url).await.unwrap_err();
        // A server that wants a certificate says so only after the handshake, and may be gone
        // before that is read. One without TLS says nothing at all.
        let late = ["certfile=", "speaks TLS"].contains(&step);
        assert!(error.kind == ErrorKind::Rejected || late, "{url}: {error}");
        assert!(error.message.contains(step), "{url}: {error}");
    }
}

/// An authority, and a certificate by it that does for both sides.
fn certificates(place: &Path) {
    let authority = Authority::new();
    authority.save(place, "ca.pem");
    let _ = authority.issue("localhost", place, "both");
}

#[tokio::test]
async fn o36_a_user_that_may_only_read_can_look() {
    let server = Server::start(&[]);
    let place = format!("127.0.0.1:{}?prefix=app", server.port());
    let store = open(&format!("redis://{place}")).await;
    assert_eq!(write(&store, create("a", 1)).await, Ok(applied(1)));
    let options = RedisOptions::parse(&format!("redis://looker:secret@{place}")).unwrap();
    let options = options.access(Access::Look);
    let acl = options.acl().replace('\'', "").replace("PASSWORD", "secret");
    for right in ["+hset", "+hdel", "+zadd", "+zrem", "+publish"] {
        assert!(!acl.contains(right), "{acl}");
    }
    let words: Vec<&str> = acl.split(' ').collect();
    assert_eq!(server.command(&words), Value::Okay, "{acl}");
    let looker = RedisStore::connect_with(options).await.unwrap();
    assert!(common::find(&looker, "a").await.is_some());
    assert_eq!(common::list(&looker, "").await.len(), 1);
    let hints = Hints::of(&looker, CLUSTER);
    eventually("a subscription", || hints.count() > 0).await;
    let error = write(&looker, create("b", 2)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    assert_eq!(common::list(&store, "").await.len(), 1);
}
