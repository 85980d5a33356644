//! Set-ups that are wrong, and what the store says about them.

#![allow(clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use common::{Server, apply, create, find, fresh, open, write};
use incumbent_core::store::{Access, ErrorKind, StoreError};
use incumbent_nats::{NatsOptions, NatsStore};

async fn refused(url: &str) -> StoreError {
    match NatsStore::connect(url).await {
        Ok(_) => panic!("{url} was accepted"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_wrong_password_is_rejected_and_never_shown() {
    let users = "jetstream { store_dir: \"DIRECTORY\" }\n\
                 authorization { users: [ { user: me, password: \"right one\" } ] }";
    let server = Server::with(users);
    let host = format!("127.0.0.1:{}", server.port());
    let error = refused(&format!("nats://me:hush@{host}")).await;
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    assert!(error.message.contains("login") && !error.message.contains("hush"), "{error}");
    assert_eq!(refused(&format!("nats://{host}")).await.kind, ErrorKind::Rejected);
    open(&format!("nats://me:right%20one@{host}")).await;
    let file = server.path().join("password");
    std::fs::write(&file, "right one\n").unwrap();
    let store = open(&format!("nats://me@{host}?passwordfile={}", file.display())).await;
    assert!(!format!("{store:?}").contains("right one"));
}

#[tokio::test]
async fn a_token_logs_in() {
    let token = "jetstream { store_dir: \"DIRECTORY\" }\nauthorization { token: \"t0ken\" }";
    let server = Server::with(token);
    let host = format!("127.0.0.1:{}", server.port());
    assert_eq!(refused(&format!("nats://wrong@{host}")).await.kind, ErrorKind::Rejected);
    let store = open(&format!("nats://t0ken@{host}")).await;
    apply(&store, create("a")).await;
}

#[tokio::test]
async fn a_server_without_jetstream_is_rejected() {
    let server = Server::with("");
    let error = refused(&server.url()).await;
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    assert!(error.message.contains("nats-server -js"), "{error}");
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let server = Server::start();
    server.kill();
    let error = refused(&server.url()).await;
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn buckets_that_could_lose_leases_are_refused() {
    let server = Server::start();
    let operator = async_nats::connect(server.url()).await.unwrap();
    let settings = [
        ("\"max_age\":60000000000", "ttl"),
        ("\"storage\":\"memory\"", "memory"),
        ("\"discard\":\"old\"", "discard"),
        ("\"max_msgs_per_subject\":-1", "values"),
        ("\"deny_purge\":true", "removed"),
    ];
    for (setting, why) in settings {
        let bucket = fresh();
        let name = setting.split(':').next().unwrap();
        let defaults =
            ["\"storage\":\"file\"", "\"discard\":\"new\"", "\"max_msgs_per_subject\":1"];
        let others = defaults.into_iter().filter(|other| !other.starts_with(name));
        let others: String = others.map(|other| format!("{other},")).collect();
        let body = format!(
            "{{\"name\":\"KV_{bucket}\",\"subjects\":[\"$KV.{bucket}.>\"],{others}{setting}}}"
        );
        let create = format!("$JS.API.STREAM.CREATE.KV_{bucket}");
        let answer = operator.request(create, body.into()).await.unwrap();
        let answer = String::from_utf8_lossy(&answer.payload).into_owned();
        assert!(!answer.contains("\"error\""), "{answer}");
        let error = refused(&format!("{}?bucket={bucket}", server.url())).await;
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        assert!(error.message.contains(why), "{error}");
        assert!(error.message.contains("nats kv add"), "{error}");
    }
}

#[tokio::test]
async fn a_bucket_is_used_by_a_user_with_the_least_rights() {
    let bucket = fresh();
    let rights = NatsOptions::new("").bucket(&bucket).permissions();
    let without = rights.replace(&format!(", \"$JS.API.STREAM.CREATE.KV_{bucket}\""), "");
    assert_ne!(rights, without);
    let users = format!(
        "jetstream {{ store_dir: \"DIRECTORY\" }}\n\
         authorization {{ users: [ \
         {{ user: maker, password: x, {rights} }}, \
         {{ user: user, password: x, {without} }}, \
         {{ user: nobody, password: x, permissions: {{ publish: [\"a\"], subscribe: [\"_INBOX.>\"] }} }}, \
         {{ user: deaf, password: x, permissions: {{ subscribe: [\"a\"] }} }} ] }}"
    );
    let server = Server::with(&users);
    let url = |user: &str| format!("nats://{user}:x@127.0.0.1:{}?bucket={bucket}", server.port());
    let error = refused(&url("user")).await;
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    let command = format!("nats kv add {bucket} --history=1 --storage=file --replicas=1");
    assert!(error.message.contains(&command), "{error}");
    for user in ["nobody", "deaf"] {
        let error = refused(&url(user)).await;
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        assert!(error.message.contains("rights"), "{error}");
    }
    let maker = open(&url("maker")).await;
    apply(&maker, create("lease/a")).await;
    let user = open(&url("user")).await;
    let _hints = common::Hints::of(&user, "c").ready().await;
    let version = find(&user, "lease/a").await.unwrap().version;
    apply(&user, common::beat("lease/a", &version, "{}")).await;
    use incumbent_core::store::{Key, Outcome, Write};
    let deleted = write(&user, Write::Delete(Key::new("lease/a"))).await;
    assert_eq!(deleted, Ok(Outcome::Deleted));
}

#[tokio::test]
async fn a_right_that_is_missing_later_is_rejected_at_once() {
    let bucket = fresh();
    let rights = NatsOptions::new("").bucket(&bucket).permissions();
    let reader = rights.replace(&format!("\"$KV.{bucket}.>\", "), "");
    let users = format!(
        "jetstream {{ store_dir: \"DIRECTORY\" }}\n\
         authorization {{ users: [ {{ user: reader, password: x, {reader} }} ] }}"
    );
    let server = Server::with(&users);
    let store = open(&format!("nats://reader:x@127.0.0.1:{}?bucket={bucket}", server.port())).await;
    let error = write(&store, create("lease/a")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    assert!(error.message.contains("publish: ["), "{error}");
    assert!(find(&store, "lease/a").await.is_none());
}

#[tokio::test]
async fn a_full_bucket_is_unavailable() {
    let server = Server::start();
    let bucket = fresh();
    let operator = async_nats::connect(server.url()).await.unwrap();
    let body = format!(
        "{{\"name\":\"KV_{bucket}\",\"subjects\":[\"$KV.{bucket}.>\"],\"storage\":\"file\",\
         \"discard\":\"new\",\"max_msgs_per_subject\":1,\"max_msgs\":2}}"
    );
    let create_stream = format!("$JS.API.STREAM.CREATE.KV_{bucket}");
    operator.request(create_stream, body.into()).await.unwrap();
    let store = open(&format!("{}?bucket={bucket}", server.url())).await;
    let first = apply(&store, create("a")).await;
    apply(&store, create("b")).await;
    let error = write(&store, create("c")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(error.message.contains("maximum") && error.message.contains("room"), "{error}");
    apply(&store, common::beat("a", &first, "{}")).await;
}

#[tokio::test]
async fn o36_a_user_that_may_only_read_can_look_and_makes_no_bucket() {
    let bucket = fresh();
    let rights = NatsOptions::new("").bucket(&bucket).access(Access::Look).permissions();
    for word in ["CREATE", "PURGE", "$KV"] {
        assert!(!rights.contains(word), "{rights}");
    }
    let users = format!(
        "jetstream {{ store_dir: \"DIRECTORY\" }}\n\
         authorization {{ users: [ {{ user: all, password: x }}, \
         {{ user: looker, password: x, {rights} }} ] }}"
    );
    let server = Server::with(&users);
    let url = |user: &str| format!("nats://{user}:x@127.0.0.1:{}?bucket={bucket}", server.port());
    let options = NatsOptions::parse(&url("looker")).unwrap().access(Access::Look);
    let looker = NatsStore::connect_with(options).await.unwrap();
    assert!(find(&looker, "lease/a").await.is_none());
    assert_eq!(common::list(&looker, "").await.len(), 0);
    let login = async_nats::ConnectOptions::with_user_and_password("all".into(), "x".into());
    let operator = login.connect(format!("127.0.0.1:{}", server.port())).await.unwrap();
    let names = operator.request("$JS.API.STREAM.NAMES", "{}".into()).await.unwrap();
    assert!(!String::from_utf8_lossy(&names.payload).contains(&bucket), "{names:?}");

    let store = open(&url("all")).await;
    apply(&store, create("lease/a")).await;
    assert!(find(&looker, "lease/a").await.is_some(), "what came later");
    assert_eq!(common::list(&looker, "").await.len(), 1);
    let error = write(&looker, create("lease/b")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
}
