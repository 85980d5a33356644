//! Gates in Redis, etcd, NATS and object storage.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;

use async_nats::jetstream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use common::{NEW, OLD, Resource, Way, block_on, holds, pause};
use incumbent_gate::{GateError, Token, etcd, nats, object};
use incumbent_proving::server;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, ClientOptions, ObjectStore, ObjectStoreExt as _, PutOptions,
};
use redis::AsyncCommands as _;

fn token(term: u64) -> Token {
    Token::new("scheduler", term)
}

/// Whether it was let through, if that is known.
fn through<T, E: std::fmt::Display>(result: Result<T, GateError<E>>) -> bool {
    match result {
        Ok(_) => true,
        Err(GateError::Superseded { term: NEW } | GateError::Changed) => false,
        Err(other) => panic!("{other}"),
    }
}

struct Redis {
    connection: redis::aio::MultiplexedConnection,
    gate: String,
    data: String,
}

impl Redis {
    async fn open(url: &str, name: String) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        let connection = client.get_multiplexed_async_connection().await.expect("a connection");
        Self { connection, gate: format!("{{{name}}}:gate"), data: format!("{{{name}}}:data") }
    }
}

impl Resource for Redis {
    async fn write(&mut self, term: u64, way: Way) -> bool {
        let way = if term == NEW { Way::Gate } else { way };
        let mut commands = redis::pipe();
        if way == Way::Gate {
            pause().await;
            commands.set(&self.data, term).incr("x", 1);
        }
        let (gate, keys, token) = (&self.gate, [self.data.as_str()], token(term));
        let asked =
            incumbent_gate::redis::admit(&mut self.connection, gate, &token, &keys, &commands);
        let through = through(asked.await);
        if through && way == Way::AskFirst {
            pause().await;
            let () = self.connection.set(&self.data, term).await.expect("a write");
        }
        through
    }

    async fn data(&mut self) -> u64 {
        self.connection.get(&self.data).await.expect("the data")
    }
}

#[test]
fn nothing_stale_gets_through_a_key_of_redis() {
    let server = server::redis::start(&[]);
    let url = server::redis::url(&server);
    block_on(async {
        holds(40, |way, round| Redis::open(&url, format!("{way:?}{round}"))).await;
        let mut one = Redis::open(&url, "one".to_owned()).await;
        // More digits than floating numbers keep apart, and replies as they came.
        let great = i64::MAX as u64;
        let mut commands = redis::pipe();
        commands.set(&one.data, "a b").get(&one.data);
        let keys = [one.data.clone()];
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut show = async |term, commands: &redis::Pipeline| {
            let token = token(term);
            incumbent_gate::redis::admit(&mut one.connection, &one.gate, &token, &keys, commands)
                .await
        };
        let replies = show(great - 1, &commands).await.expect("it is let through");
        assert_eq!(replies[1], redis::Value::BulkString(b"a b".to_vec()));
        show(great, &redis::pipe()).await.expect("it is let through");
        let refused = show(great - 1, &commands).await;
        assert!(matches!(refused, Err(GateError::Superseded { term }) if term == great));
        show(9, &redis::pipe()).await.expect_err("nine is less than that, as text too");
        let () = one.connection.set(&one.gate, "mine").await.expect("a write");
        let mut show = async |term| {
            let pipe = redis::pipe();
            incumbent_gate::redis::admit(&mut one.connection, &one.gate, &token(term), &[], &pipe)
                .await
        };
        let refused = show(great).await;
        assert!(matches!(refused, Err(GateError::Unreadable(found)) if found == "mine"));
    });
}

struct Etcd {
    channel: tonic::transport::Channel,
    plain: reqwest::Client,
    url: String,
    gate: String,
    data: String,
}

impl Etcd {
    async fn open(url: &str, name: String) -> Self {
        let channel = tonic::transport::Channel::from_shared(url.to_owned()).expect("a URL");
        let channel = channel.connect().await.expect("a connection");
        let (plain, url) = (reqwest::Client::new(), url.to_owned());
        Self { channel, plain, url, gate: format!("gate/{name}"), data: format!("data/{name}") }
    }
}

impl Resource for Etcd {
    async fn write(&mut self, term: u64, way: Way) -> bool {
        let way = if term == NEW { Way::Gate } else { way };
        let value = term.to_string();
        let write = [(self.data.as_str(), Some(value.as_bytes()))];
        let writes = if way == Way::Gate { write.as_slice() } else { &[] };
        if way == Way::Gate {
            pause().await;
        }
        let asked = etcd::admit(self.channel.clone(), &self.gate, &token(term), writes).await;
        let through = through(asked);
        if through && way == Way::AskFirst {
            pause().await;
            // Past the gate: one that is always open.
            let gate = format!("{}/{term}", self.gate);
            let done = etcd::admit(self.channel.clone(), &gate, &token(0), &write).await;
            done.expect("a write");
        }
        through
    }

    async fn data(&mut self) -> u64 {
        // By another way than the gate's: the gateway for JSON.
        let key = BASE64.encode(&self.data);
        let asked = self.plain.post(format!("{}/v3/kv/range", self.url));
        let asked = asked.body(format!("{{\"key\":\"{key}\"}}")).send().await.expect("an answer");
        let said = asked.text().await.expect("an answer");
        let value = said.split("\"value\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let value = BASE64.decode(value.unwrap_or_else(|| panic!("{said}"))).expect("a value");
        String::from_utf8(value).expect("text").parse().expect("a term")
    }
}

#[test]
fn nothing_stale_gets_through_a_key_of_etcd() {
    let server = server::etcd::start(&[]);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = server::etcd::url(&server).replace("etcd://", "http://");
    block_on(async {
        holds(25, |way, round| Etcd::open(&url, format!("{way:?}{round}"))).await;
        let one = Etcd::open(&url, "one".to_owned()).await;
        let show = async |term, writes: &[(&str, Option<&[u8]>)]| {
            etcd::admit(one.channel.clone(), "gate/one", &token(term), writes).await
        };
        show(9, &[("a", Some(b"1"))]).await.expect("a new gate");
        show(10, &[("a", None)]).await.expect("ten is more than nine, as text too");
        let refused = show(9, &[]).await;
        assert!(matches!(refused, Err(GateError::Superseded { term: 10 })), "{refused:?}");
        show(0, &[("gate/one", Some(b"mine"))]).await.expect_err("a key twice");
        etcd::admit(one.channel.clone(), "x", &token(1), &[("gate/one", Some(b"mine"))])
            .await
            .expect("somebody else writes there");
        let refused = show(11, &[]).await;
        assert!(matches!(refused, Err(GateError::Unreadable(_))), "{refused:?}");
    });
}

struct Nats {
    client: async_nats::Client,
    js: jetstream::Context,
    key: String,
}

impl Nats {
    async fn open(url: &str, key: String) -> Self {
        let client = async_nats::connect(url).await.expect("a connection");
        Self { js: jetstream::new(client.clone()), client, key }
    }

    async fn try_write(&self, term: u64) -> bool {
        let found = nats::load(&self.js, "gated", &self.key).await.expect("an answer");
        pause().await;
        let value = term.to_string().into_bytes();
        through(nats::save(&self.js, "gated", &self.key, &token(term), &found, value).await)
    }
}

impl Resource for Nats {
    async fn write(&mut self, term: u64, way: Way) -> bool {
        if way == Way::Gate {
            return self.try_write(term).await;
        }
        let found = nats::load(&self.js, "gated", &self.key).await.expect("an answer");
        if found.term > term {
            return false;
        }
        if term == OLD {
            pause().await;
        }
        let subject = format!("$KV.gated.{}", self.key);
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Incumbent-Term", term.to_string());
        let sent = self.js.publish_with_headers(subject, headers, term.to_string().into()).await;
        sent.expect("it is sent").await.expect("a write");
        true
    }

    async fn data(&mut self) -> u64 {
        let asked = format!("{{\"last_by_subj\":\"$KV.gated.{}\"}}", self.key);
        let said = api(&self.client, "STREAM.MSG.GET.KV_gated", asked).await;
        let value = said.split("\"data\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let value = BASE64.decode(value.unwrap_or_else(|| panic!("{said}"))).expect("a value");
        String::from_utf8(value).expect("text").parse().expect("a term")
    }
}

/// By another way than the gate's, and without what newer servers alone answer.
async fn api(client: &async_nats::Client, subject: &str, body: String) -> String {
    let answer = client.request(format!("$JS.API.{subject}"), body.into()).await;
    let said = String::from_utf8(answer.expect("an answer").payload.to_vec()).expect("text");
    assert!(!said.contains("\"error\""), "{said}");
    said
}

#[test]
fn nothing_stale_gets_through_a_key_of_nats() {
    let server = server::nats::start();
    let url = server::nats::url(&server);
    block_on(async {
        let client = async_nats::connect(&url).await.expect("a connection");
        let bucket = "{\"name\":\"KV_gated\",\"subjects\":[\"$KV.gated.>\"],\
                      \"max_msgs_per_subject\":1,\"storage\":\"file\",\"num_replicas\":1,\
                      \"retention\":\"limits\",\"discard\":\"new\",\"max_bytes\":-1,\
                      \"max_consumers\":-1,\"max_msgs\":-1,\"max_msg_size\":-1}";
        api(&client, "STREAM.CREATE.KV_gated", bucket.to_owned()).await;
        holds(25, |way, round| Nats::open(&url, format!("{way:?}{round}"))).await;
        let one = Nats::open(&url, "one".to_owned()).await;
        let new = nats::load(&one.js, "gated", "one").await.expect("no key yet");
        assert_eq!(new, nats::Found::default());
        let save = async |found: &nats::Found, term| {
            nats::save(&one.js, "gated", "one", &token(term), found, b"x".to_vec()).await
        };
        let first = save(&new, OLD).await.expect("a write");
        assert_eq!(nats::load(&one.js, "gated", "one").await.expect("it"), first);
        let refused = save(&new, OLD).await;
        assert!(matches!(refused, Err(GateError::Changed)), "{refused:?}");
        save(&first, NEW).await.expect("a higher term");
        let refused = save(&first, OLD).await;
        assert!(matches!(refused, Err(GateError::Superseded { term: NEW })), "{refused:?}");
    });
}

struct Object {
    store: Arc<dyn ObjectStore>,
    path: Path,
}

impl Resource for Object {
    async fn write(&mut self, term: u64, way: Way) -> bool {
        let found = object::load(&*self.store, &self.path).await.expect("an answer");
        if way == Way::Gate || term == OLD {
            pause().await;
        }
        let content = term.to_string().into_bytes();
        if way == Way::Gate {
            let saved = object::save(&*self.store, &self.path, &token(term), &found, content).await;
            return through(saved);
        }
        if found.term > term {
            return false;
        }
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata("incumbentterm".into()), term.to_string().into());
        let options = PutOptions { attributes, ..PutOptions::default() };
        self.store.put_opts(&self.path, content.into(), options).await.expect("a write");
        true
    }

    async fn data(&mut self) -> u64 {
        let found = self.store.get(&self.path).await.expect("an object");
        let content = found.bytes().await.expect("its content").to_vec();
        String::from_utf8(content).expect("text").parse().expect("a term")
    }
}

#[test]
fn nothing_stale_gets_through_an_object() {
    let server = server::azurite::start();
    let endpoint = format!("http://127.0.0.1:{}/devstoreaccount1", server.port());
    let _ = rustls::crypto::ring::default_provider().install_default();
    block_on(async {
        // It makes the container.
        incumbent::open(&server::azurite::url(server.port(), "gated")).await.expect("a container");
        let store = MicrosoftAzureBuilder::new()
            .with_account("devstoreaccount1")
            .with_access_key(
                "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
            )
            .with_config(AzureConfigKey::Endpoint, endpoint)
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_container_name("gated")
            .build();
        let store: Arc<dyn ObjectStore> = Arc::new(store.expect("a client"));
        holds(8, |way, round| {
            let (store, path) = (Arc::clone(&store), Path::from(format!("{way:?}{round}")));
            async move { Object { store, path } }
        })
        .await;
        let path = Path::from("one");
        let new = object::load(&*store, &path).await.expect("no object yet");
        let save = async |found: &object::Found, term| {
            object::save(&*store, &path, &token(term), found, b"x".to_vec()).await
        };
        let first = save(&new, OLD).await.expect("a write");
        let found = object::load(&*store, &path).await.expect("it");
        assert_eq!((found.term, found.content), (OLD, b"x".to_vec()));
        let refused = save(&new, OLD).await;
        assert!(matches!(refused, Err(GateError::Changed)), "{refused:?}");
        save(&first, NEW).await.expect("a higher term");
        let refused = save(&first, OLD).await;
        assert!(matches!(refused, Err(GateError::Superseded { term: NEW })), "{refused:?}");
    });
}
