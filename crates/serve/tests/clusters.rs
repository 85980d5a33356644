//! Several clusters of one store through one server.
#![cfg(target_os = "linux")]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::events::Events;
use common::{Server, pass, text, wait_until};
use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, Wake};
use incumbent::{Campaign, Leadership, MemoryStore, Node};
use incumbent_serve::{Access, MOST_CLUSTERS, Options, Service};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(600);

fn server() -> Server {
    let store = MemoryStore::new();
    Server::with_clusters(store.clone(), store, Access::open(), &["shop", "a b/ü", "shop"])
}

/// Somebody who leads in another cluster than the server's.
struct Elsewhere {
    _node: Node,
    _campaign: Campaign,
    leadership: Option<Leadership>,
}

fn lead(server: &Server, cluster: &str, lease: &str) -> Elsewhere {
    let store = server.store.clone();
    server.runtime().block_on(async {
        let builder = Node::builder().cluster(cluster).ttl(LONG).name("till-1");
        let node = builder.join(store).await.unwrap();
        let mut campaign = node.campaign(lease).unwrap();
        let leadership = Some(campaign.elected().await.unwrap());
        Elsewhere { _node: node, _campaign: campaign, leadership }
    })
}

fn states(server: &Server) -> BTreeMap<String, (String, String)> {
    let all = server.get("/v1/clusters").json();
    let of = |it: &Value| {
        let (name, state) = (text(it, "cluster").to_owned(), text(it, "state").to_owned());
        (name, (state, text(it, "says").to_owned()))
    };
    all["clusters"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn each_cluster_is_looked_at_by_its_name() {
    let server = server();
    let _till = lead(&server, "shop", "till");
    let mut hold = server.hold_here("scheduler", json!({ "name": "a" }));
    hold.until("elected");
    let about = server.get("/v1/cluster").json();
    assert_eq!(about["clusters"], json!(["default", "shop", "a b/ü"]), "each once");
    let other = server.get("/v1/cluster?cluster=a+b%2F%C3%BC").json();
    assert_eq!((text(&other, "cluster"), text(&other, "joined")), ("a b/ü", "default"));

    let leases = |query: &str| {
        let all = server.get(&format!("/v1/leases{query}")).json();
        let names = all["leases"].as_array().unwrap().iter();
        names.map(|it| text(it, "lease").to_owned()).collect::<Vec<_>>()
    };
    assert!(leases("").contains(&"scheduler".to_owned()), "the joined one is meant by default");
    assert_eq!(leases("?cluster=default"), leases(""));
    assert!(leases("?cluster=shop").contains(&"till".to_owned()));
    assert!(!leases("?cluster=shop").contains(&"scheduler".to_owned()));
    assert_eq!(leases("?cluster=a+b%2F%C3%BC"), Vec::<String>::new());
    // The same lease of another cluster is another one, also where it is followed.
    let till = server.get("/v1/leases/till?cluster=shop&after=0.free&wait=5s").json();
    assert_eq!(text(&till["leader"], "node"), "till-1");
    assert_eq!(server.get("/v1/leases/till?after=1&wait=0s").json()["leader"], Value::Null);

    let unknown = server.get("/v1/members?cluster=shopp");
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "not-found"));
    assert_eq!(unknown.json()["clusters"], about["clusters"]);
    assert!(text(&unknown.json(), "detail").contains("default, shop, a b/ü"), "{}", unknown.text);
    assert_eq!(server.get("/v1/members?cluster=shop&cluster=default").status, 400, "which?");
    // Holding and roles are of the joined cluster alone, and don't seem to be of another.
    let held =
        server.ask("POST", "/v1/leases/x/acquire?cluster=shop", Some(json!({ "name": "a" })));
    assert_eq!(held.status, 400, "{}", held.text);
    assert_eq!(server.get("/leader/till?cluster=shop").status, 400);
}

#[test]
fn a_cluster_in_trouble_is_seen_beside_the_others() {
    let server = server();
    let mut till = lead(&server, "shop", "till");
    wait_until("all is well", || states(&server)["shop"].0 == "ok");
    let all = states(&server);
    assert_eq!(all["a b/ü"], ("empty".to_owned(), "nobody has joined it".to_owned()));
    assert!(all["shop"].1.ends_with("led, 0 duties running"), "{all:?}");
    let leadership = till.leadership.take().unwrap();
    server.runtime().block_on(leadership.release()).unwrap();
    drop(till);
    wait_until("it is free", || states(&server)["shop"].0 != "ok");
    let (state, says) = states(&server)["shop"].clone();
    assert!(["warn", "bad"].contains(&state.as_str()), "{state}");
    assert!(says.contains("is free"), "{says}");
}

#[test]
fn steering_is_done_and_written_down_in_the_cluster_that_is_named() {
    let server = server();
    let _till = lead(&server, "shop", "till");
    let asked = server.ask("PUT", "/v1/nodes/till-1/drain?cluster=shop", Some(json!({})));
    assert_eq!((asked.status, text(&asked.json(), "asked")), (202, "drain"));
    assert_eq!(text(&asked.json(), "state"), "/v1/intents?cluster=shop");
    assert_eq!(asked.headers["location"], "/v1/intents?cluster=shop");
    assert_eq!(asked.json()["unknown"], json!([]), "it is known there");
    let resigned = server.ask("POST", "/v1/leases/till/resign?cluster=shop", Some(json!({})));
    assert_eq!(resigned.status, 202, "{}", resigned.text);
    // Nobody has that lease in the joined cluster, although it has the same name there.
    let nobody = server.ask("POST", "/v1/leases/till/resign", Some(json!({})));
    assert_eq!(nobody.code(), "nobody-leads");

    let acts = |query: &str| {
        let all = server.get(&format!("/v1/audit{query}")).json()["acts"].clone();
        all.as_array().unwrap().iter().map(|it| text(it, "act").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(acts("?cluster=shop"), ["resign", "drain"]);
    assert_eq!(acts(""), ["resign"], "the one that was refused");
    assert_eq!(acts("?cluster=a+b%2F%C3%BC"), Vec::<String>::new());
    assert_eq!(server.ask("DELETE", "/v1/freeze?cluster=nope", None).status, 404);
}

#[test]
fn who_may_only_look_can_steer_no_other_cluster_either() {
    let store = MemoryStore::new();
    let access = Access::open().read_only(true);
    let server = Server::with_clusters(store.clone(), store, access, &["shop"]);
    assert_eq!(server.get("/v1/leases?cluster=shop").status, 200);
    let refused = server.ask("PUT", "/v1/freeze?cluster=shop", Some(json!({})));
    assert_eq!((refused.status, refused.code().as_str()), (403, "not-allowed"));
    assert_eq!(server.get("/v1/intents?cluster=shop").json()["intents"], json!([]));
}

#[test]
fn events_are_those_of_the_cluster_that_is_named() {
    let server = server();
    let mut events = Events::open_at(&server, "/v1/events?cluster=shop", None);
    let (name, id, state) = events.next();
    assert_eq!((name.as_str(), text(&state, "cluster")), ("state", "shop"));
    let mut hold = server.hold_here("scheduler", json!({ "name": "a" }));
    hold.until("elected");
    let _till = lead(&server, "shop", "till");
    loop {
        let (_, lease) = events.until("lease");
        assert_ne!(text(&lease, "lease"), "scheduler", "it is of the other cluster");
        if text(&lease, "lease") == "till" {
            break;
        }
    }
    // The number of an event says nothing in another cluster.
    let mut other = Events::open(&server, Some(&id));
    let (name, _, state) = other.next();
    assert_eq!((name.as_str(), text(&state, "cluster")), ("state", "default"));
}

/// A store that counts what is asked of each cluster.
#[derive(Clone)]
struct Counting {
    store: MemoryStore,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Store for Counting {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        *self.asked.lock().unwrap().entry(cluster.to_owned()).or_default() += 1;
        self.store.exchange(cluster, lane, exchange)
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.store.hints(cluster, wake)
    }
}

#[test]
fn a_cluster_that_nobody_looks_at_is_not_read() {
    let (store, asked) = (MemoryStore::new(), Arc::default());
    let counting = Counting { store: store.clone(), asked: Arc::clone(&asked) };
    let server = Server::with_clusters(counting, store, Access::open(), &["shop"]);
    let count = || asked.lock().unwrap().get("shop").copied().unwrap_or_default();
    pass(Duration::from_secs(1));
    assert_eq!(server.get("/v1/leases").status, 200);
    assert_eq!(count(), 0, "nobody has looked");
    // However many ask how all stand, it is read now and then.
    states(&server);
    let one = count();
    assert!(one > 0);
    for _ in 0..20 {
        states(&server);
    }
    assert!(count() <= 2 * one, "{} exchanges, and {one} at first", count());
    let events = Events::open_at(&server, "/v1/events?cluster=shop", None);
    wait_until("it is looked at", || count() > 2 * one);
    drop(events);
    // Whoever has gone is noticed at the next beat, and looking ends after the look that was under way.
    wait_until("nobody looks any more", || {
        let before = count();
        pass(Duration::from_millis(2500));
        count() == before
    });
}

#[test]
fn names_that_are_none_and_too_many_of_them_are_refused() {
    let server = server();
    let node = server.service.node().clone();
    let _runtime = server.runtime().enter();
    let refused = |also: Vec<String>| {
        let mut options = Options::default();
        options.also = also;
        Service::new(node.clone(), options).unwrap_err().to_string()
    };
    assert!(refused(vec![String::new()]).contains("cluster"));
    let many = (0..MOST_CLUSTERS).map(|number| format!("c{number}")).collect();
    assert!(refused(many).contains("the limit is 64 clusters"));
}
