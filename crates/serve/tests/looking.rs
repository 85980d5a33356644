//! Roles, looking, long polls, events and steering over real connections.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::events::Events;
use common::{Server, pass, text, wait_until};
use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, Wake};
use incumbent::{MemoryStore, Node, clock, family};
use incumbent_serve::Access;
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(600);

/// F55, F56, F59: the role is that of the moment, in two codes that every probe understands.
#[test]
fn a_role_is_answered_from_the_trust_of_this_moment() {
    let server = Server::new(LONG);
    let unknown = server.get("/leader/scheduler");
    assert_eq!((unknown.status, &unknown.json()["here"]), (503, &json!(false)));
    let mut hold = server.hold_here("scheduler", json!({ "name": "a", "address": "a:80" }));
    let elected = hold.until("elected");
    let role = server.get("/leader/scheduler");
    assert_eq!(role.status, 200);
    let role = role.json();
    assert_eq!((&role["term"], text(&role, "node")), (&json!(1), "a"));
    assert_eq!((text(&role, "address"), &role["known_ms_ago"]), ("a:80", &json!(0)));
    assert!(role["trusted_for_ms"].as_u64().unwrap() > 0);
    for method in ["HEAD", "OPTIONS"] {
        assert_eq!(server.ask(method, "/leader/scheduler", None).status, 200, "{method}");
    }
    wait_until("it names the cluster's leader, if no other lease is named", || {
        server.get("/").json() == json!({ "name": "server" })
    });
    assert_eq!(server.get("/?lease=scheduler").json(), json!({ "name": "a" }));
    server.delete(text(&elected, "hold"));
    assert_eq!(server.get("/leader/scheduler").status, 503);
    assert_eq!(server.get("/leader/scheduler?standby=200").status, 200);
    assert_eq!(server.get("/leader/scheduler?standby=201").status, 400);
    assert_eq!(server.get("/leader/%00").status, 400);
}

/// F55: who asks a standby is told who leads and how old that is, and isn't told of the old leader
/// for ever.
#[test]
fn a_standby_names_the_leader_and_the_age_of_that_knowledge() {
    let server = Server::new(LONG);
    let store = server.store.clone();
    let elsewhere = server.runtime().block_on(async {
        let node = Node::builder().ttl(LONG).name("elsewhere").join(store).await.unwrap();
        let mut campaign = node.campaign("scheduler").unwrap();
        let leadership = campaign.elected().await.unwrap();
        (node, campaign, leadership)
    });
    let mut role = Value::Null;
    wait_until("the leader is known", || {
        let reply = server.get("/leader/scheduler");
        assert_eq!(reply.status, 503, "it isn't held here");
        role = reply.json();
        role["node"] == "elsewhere"
    });
    assert!(role["known_ms_ago"].as_u64().unwrap() < 5000, "{role}");
    drop(elsewhere);
    wait_until("the old leader is forgotten", || {
        server.get("/leader/scheduler").json()["node"].is_null()
    });
}

/// O58: an empty name means that nobody holds it, and not that nothing is known yet.
#[test]
fn the_first_question_about_a_lease_is_not_answered_by_nobody() {
    let server = Server::new(LONG);
    let store = server.store.clone();
    let _elsewhere = server.runtime().block_on(async {
        let node = Node::builder().ttl(LONG).name("elsewhere").join(store).await.unwrap();
        let mut campaign = node.campaign("scheduler").unwrap();
        let leadership = campaign.elected().await.unwrap();
        (node, campaign, leadership)
    });
    assert_eq!(server.get("/?lease=scheduler").json(), json!({ "name": "elsewhere" }));
}

/// F58: neither probe depends on who leads, nor on whether the store answers.
#[test]
fn probes_do_not_depend_on_who_leads() {
    let server = Server::new(LONG);
    for path in ["/livez", "/readyz"] {
        let probe = server.get(path);
        assert_eq!((probe.status, text(&probe.json(), "status")), (200, "ok"));
    }
}

/// F71: a long poll wakes for its own lease and for nothing else, and misses nothing.
#[test]
fn a_long_poll_wakes_for_its_own_lease_alone() {
    let server = Server::new(LONG);
    let fresh = server.get("/v1/leases/scheduler").json();
    assert_eq!(text(&fresh, "cursor"), "0.free");
    // What has changed already is answered at once.
    let now = server.get("/v1/leases/scheduler?after=5&wait=60s").json();
    assert_eq!(text(&now, "cursor"), "0.free");
    std::thread::scope(|scope| {
        let (server, began) = (&server, clock::now());
        let waiting = scope.spawn(move || {
            let lease = server.get("/v1/leases/scheduler?after=0.free&wait=60s").json();
            (lease, clock::now().since(began))
        });
        // Others change meanwhile.
        for number in 0..20 {
            let path = format!("/v1/leases/other-{number}/acquire");
            assert_eq!(server.ask("POST", &path, Some(json!({ "name": "x" }))).status, 201);
        }
        assert!(!waiting.is_finished(), "it woke for somebody else's lease");
        let held = server.ask("POST", "/v1/leases/scheduler/acquire", Some(json!({ "name": "a" })));
        let (lease, took) = waiting.join().unwrap();
        assert_eq!((text(&lease, "cursor"), text(&lease["leader"], "node")), ("1", "a"));
        assert!(took < Duration::from_secs(50), "it was woken, and not timed out");
        let hold = held.json();
        let freed = scope.spawn(move || server.get("/v1/leases/scheduler?after=1&wait=60s").json());
        server.delete(text(&hold, "hold"));
        assert_eq!(text(&freed.join().unwrap(), "cursor"), "1.free");
    });
    let same = server.get("/v1/leases/scheduler?after=1.free&wait=10ms");
    assert_eq!(text(&same.json(), "cursor"), "1.free");
    assert_eq!(same.headers["etag"], "\"1\"");
    assert_eq!(server.get("/v1/leases/scheduler?after=x").status, 400);
    assert_eq!(server.get("/v1/leases/scheduler?after=1&wait=2h").status, 400);
}

/// The server looks at its store by the clock, whoever asks. Among many times in which it is asked hundreds of questions
/// there is one in which the store is asked nothing; if any question cost a request, there would be none.
#[test]
fn roles_are_answered_without_the_store() {
    let server = Server::new(LONG);
    let mut hold = server.hold_here("scheduler", json!({ "name": "a" }));
    hold.until("elected");
    for (lease, status) in [("scheduler", "HTTP/1.1 200"), ("other", "HTTP/1.1 503")] {
        // The first question makes the server follow the lease.
        wait_until("it is known", || {
            let known = server.get(&format!("/leader/{lease}")).json();
            known["known_ms_ago"].is_u64()
        });
        let mut stream = TcpStream::connect(server.tcp).unwrap();
        let question = format!("GET /leader/{lease} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut requests = || {
            let before = server.requests.load(Ordering::Relaxed);
            for _ in 0..100 {
                stream.write_all(question.as_bytes()).unwrap();
                let mut answer = [0; 4096];
                let length = stream.read(&mut answer).unwrap();
                assert!(String::from_utf8_lossy(answer.get(..length).unwrap()).starts_with(status));
            }
            server.requests.load(Ordering::Relaxed) - before
        };
        let fewest = (0..100).map(|_| requests()).find(|count| *count == 0);
        assert_eq!(fewest, Some(0), "{lease}: questions about roles are asked of the store");
    }
}

#[test]
fn events_come_as_they_happen_and_go_on_where_they_broke_off() {
    let server = Server::new(LONG);
    let mut events = Events::open(&server, None);
    let (name, _, state) = events.next();
    assert_eq!((name.as_str(), &state["cluster"]), ("state", &json!("default")));
    let mut hold = server.hold_here("scheduler", json!({ "name": "a" }));
    hold.until("elected");
    let (id, lease) = loop {
        let (id, lease) = events.until("lease");
        if lease["lease"] == "scheduler" {
            break (id, lease);
        }
    };
    assert_eq!(
        (&lease["change"]["kind"], &lease["leader"]["node"]),
        (&json!("taken"), &json!("a"))
    );
    drop(events);
    let mut other = server.hold_here("other", json!({ "name": "b" }));
    other.until("elected");
    let mut events = Events::open(&server, Some(&id));
    let mut seen = Vec::new();
    loop {
        let (name, _, data) = events.next();
        assert_ne!(name, "state", "it goes on after the last event");
        seen.push(data["lease"].clone());
        if data["lease"] == "other" {
            break;
        }
    }
    assert!(!seen.contains(&json!("scheduler")), "what was seen isn't told again");
    // A run that nobody knows begins with the state.
    assert_eq!(Events::open(&server, Some("0badcafe-7")).next().0, "state");
}

#[test]
fn an_end_is_asked_for_of_the_term_that_is_meant() {
    let server = Server::new(LONG);
    let path = "/v1/leases/scheduler/resign";
    let nobody = server.ask("POST", path, Some(json!({})));
    assert_eq!((nobody.status, nobody.code().as_str()), (409, "nobody-leads"));
    let mut hold = server.hold_here("scheduler", json!({ "name": "a", "grace": "60s" }));
    hold.until("elected");
    let other = server.ask_with("POST", path, &[("if-match", "\"7\"")], Some(json!({})));
    assert_eq!((other.status, other.code().as_str()), (412, "term-changed"));
    assert_eq!(other.json()["term"], 1);
    let odd = server.ask_with("POST", path, &[("if-match", "seven")], Some(json!({})));
    assert_eq!(odd.status, 400);
    assert_eq!(server.get("/leader/scheduler").status, 200, "nothing was asked for");
    // F68: it is under way, and says where it can be seen, instead of done or failed.
    let asked = server.ask_with("POST", path, &[("if-match", "\"1\"")], Some(json!({})));
    assert_eq!((asked.status, text(&asked.json(), "state")), (202, "/v1/leases/scheduler"));
    assert_eq!(hold.until("stopping")["why"], "resigned");
    let nobody = json!({ "to": "nobody" });
    let unknown = server.ask("POST", "/v1/leases/scheduler/transfer", Some(nobody));
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "not-found"));
    let acts = server.get("/v1/audit").json();
    let acts: Vec<&str> =
        acts["acts"].as_array().unwrap().iter().map(|it| text(it, "act")).collect();
    assert_eq!(acts, ["transfer", "resign", "resign", "resign"], "newest first");
}

#[test]
fn duties_are_seen_explained_planned_and_steered() {
    let server = Server::new(LONG);
    let store = server.store.clone();
    let nodes: Vec<Node> = server.runtime().block_on(async {
        let mut nodes = Vec::new();
        for name in ["one", "two"] {
            let node = Node::builder().ttl(LONG).name(name).join(store.clone()).await.unwrap();
            let work = family("work").duties(["a", "b"]).run(|duty| async move {
                duty.lost().await;
                Ok(())
            });
            // Dropped, it goes on.
            let _ = node.serve(work).unwrap();
            nodes.push(node);
        }
        nodes
    });
    let duties = || server.get("/v1/duties").json()["duties"].as_array().unwrap().clone();
    wait_until("both run", || {
        let duties = duties();
        duties.len() == 2 && duties.iter().all(|duty| duty["state"] == "active")
    });
    let explained = server.get("/v1/duties/work%2Fa/explain").json();
    assert!(!explained["explanation"].as_array().unwrap().is_empty());
    assert_eq!(server.get("/v1/duties/work%2Fz").status, 404);
    let busy = duties()[0]["node"].as_str().unwrap().to_owned();
    // What a drain would do is seen before it is done.
    let plan = server.get(&format!("/v1/plan?drain={busy}")).json();
    let moves = plan["moves"].as_array().unwrap();
    assert!(moves.iter().all(|step| step["from"] == busy.as_str()) && !moves.is_empty(), "{plan}");
    assert!(server.get("/v1/plan").json()["moves"].as_array().unwrap().is_empty());
    assert!(server.get("/v1/intents").json()["intents"].as_array().unwrap().is_empty());
    let asked = server.ask("PUT", &format!("/v1/nodes/{busy}/drain"), Some(json!({})));
    assert_eq!((asked.status, text(&asked.json(), "asked")), (202, "drain"));
    wait_until("nothing is left there", || {
        duties().iter().all(|duty| duty["node"] != busy.as_str())
    });
    wait_until("the member is shown as drained", || {
        let members = server.get("/v1/members").json()["members"].as_array().unwrap().clone();
        members.iter().any(|member| member["node"] == busy.as_str() && member["drained"] == true)
    });
    let undone = server.ask("DELETE", &format!("/v1/nodes/{busy}/drain"), None);
    assert_eq!(undone.status, 202);
    for (method, path, body) in [
        ("PUT", "/v1/nodes/one/cordon", Some(json!({}))),
        ("DELETE", "/v1/nodes/one/cordon", None),
        ("PUT", "/v1/duties/work%2Fa/pause", Some(json!({}))),
        ("DELETE", "/v1/duties/work%2Fa/pause", None),
        ("PUT", "/v1/duties/work%2Fa/pin", Some(json!({ "node": "one", "required": true }))),
        ("DELETE", "/v1/duties/work%2Fa/pin", None),
        ("POST", "/v1/duties/work%2Fa/move", Some(json!({ "to": "two" }))),
        ("PUT", "/v1/freeze", Some(json!({}))),
    ] {
        assert_eq!(server.ask(method, path, body).status, 202, "{method} {path}");
    }
    pass(Duration::from_millis(250));
    let intents = server.get("/v1/intents").json();
    let freeze = intents["intents"].as_array().unwrap().iter().find(|it| it["kind"] == "freeze");
    let id = text(freeze.unwrap(), "id").to_owned();
    assert_eq!(server.ask("DELETE", &format!("/v1/intents/{id}"), None).status, 202);
    assert_eq!(server.ask("DELETE", &format!("/v1/intents/{id}"), None).status, 404);
    let history = server.get("/v1/history?duty=work").json();
    assert!(!history["moves"].as_array().unwrap().is_empty());
    assert!(history["leases"].as_array().unwrap().is_empty());
    drop(nodes);
}

/// A store that takes its time with reads, once it is told to, and counts them.
#[derive(Clone)]
struct Slow {
    store: MemoryStore,
    slow: Arc<AtomicBool>,
    reads: Arc<AtomicU64>,
}

impl Store for Slow {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        let slow = lane == Lane::Watch && self.slow.load(Ordering::SeqCst);
        if slow {
            self.reads.fetch_add(1, Ordering::SeqCst);
        }
        Box::pin(async move {
            if slow {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            self.store.exchange(cluster, lane, exchange).await
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.store.hints(cluster, wake)
    }
}

#[test]
fn o62_a_crowd_that_looks_shares_its_readings() {
    let store = MemoryStore::new();
    let slow = Slow { store: store.clone(), slow: Arc::default(), reads: Arc::default() };
    let server = Server::with_clusters(slow.clone(), store, Access::open(), &[]);
    slow.slow.store(true, Ordering::SeqCst);
    let reads = |look: &dyn Fn()| {
        let before = slow.reads.load(Ordering::SeqCst);
        look();
        slow.reads.load(Ordering::SeqCst) - before
    };
    let look = || assert_eq!(server.get("/v1/leases").status, 200);
    let one = reads(&look);
    assert!(one > 0);
    pass(Duration::from_secs(1));
    let crowd = reads(&|| {
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(look);
            }
        });
    });
    // The node itself reads now and then.
    assert!(crowd <= 4 * one + 8, "{crowd} reads for twenty, and {one} for one");
}
