//! What operators have asked for: it is listed, shown where it matters, and taken back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this is test code")]

mod common;

use common::records::{held_lease, silent_member};
use common::{PATIENCE, Trial};
use incumbent::{DutyDescription, Node, Serving, clock, family};
use serde_json::Value;

/// A member that was cut off.
const CUT_OFF: &str = "00000000000000000000000000000bad";

/// A node with room for ten, which serves two duties of which one is heavy.
fn worker(trial: &Trial, name: &str) -> (Node, Serving) {
    let node = trial.runtime.block_on(async {
        let store = incumbent::open(&trial.url()).await.unwrap();
        let builder = Node::builder().ttl(common::TTL).cluster("trial").name(name);
        builder.capacity(10).max_duties(5).join(store).await.unwrap()
    });
    let orders = DutyDescription::named("orders").version("3").weight(4);
    let stock = DutyDescription::named("stock").version("3");
    let family = family("projection").duties([orders, stock]).version("3");
    let serving = trial.serving(&node, family);
    (node, serving)
}

/// Looks until it is as wanted.
#[track_caller]
fn until(trial: &Trial, arguments: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let began = clock::now();
    loop {
        let shown = trial.run(arguments).succeeds().json();
        if wanted(&shown) {
            return shown;
        }
        assert!(clock::now().since(began) < PATIENCE, "{shown:#}");
    }
}

fn states(shown: &Value) -> Vec<&str> {
    let duties = shown["duties"].as_array().unwrap();
    duties.iter().map(|duty| duty["state"].as_str().unwrap()).collect()
}

#[test]
fn o35_versions_weights_and_asks_are_shown() {
    let trial = Trial::with_store();
    let (_node, _serving) = worker(&trial, "billing-1");
    let status = &["status", "--json"];
    until(&trial, status, |shown| states(shown) == ["active", "active"]);
    trial.run(&["cordon", "billing-1"]).succeeds();
    trial.run(&["pin", "projection/orders", "--to", "billing-1", "--required"]).succeeds();
    trial.run(&["pause", "projection/stock"]).succeeds();
    trial.run(&["freeze"]).succeeds();
    let shown = until(&trial, status, |shown| states(shown) == ["active", "paused"]);
    let member = &shown["members"][0];
    assert_eq!((&member["cordoned"], &member["drained"]), (&true.into(), &false.into()));
    assert_eq!((&member["capacity"], &member["max_duties"]), (&10.into(), &5.into()));
    assert_eq!((&member["duties"], &member["load"]), (&1.into(), &4.into()));
    assert_eq!(member["families"]["projection"], Value::from(vec!["3"]));
    let orders = &shown["duties"][0];
    assert_eq!((&orders["version"], &orders["weight"]), (&"3".into(), &4.into()));
    assert_eq!(orders["pinned"]["node"], "billing-1");
    assert_eq!(orders["pinned"]["required"], true);
    let intents = shown["intents"].as_array().unwrap();
    let kinds: Vec<&str> = intents.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["cordon", "pin", "pause", "freeze"]);
    let duties = trial.run(&["duties", "--json"]).succeeds().json();
    assert_eq!(duties["duties"][0]["weight"], 4);
    assert_eq!(duties["intents"].as_array().map(Vec::len), Some(4));

    for command in ["status", "duties"] {
        let shown = trial.run(&[command]).succeeds().says(&[
            "VERSION",
            "WEIGHT",
            "pinned here or nowhere",
            "paused",
            "cordon billing-1",
            "freeze",
            "in force",
        ]);
        println!("{}", shown.stdout);
    }
    trial.run(&["status"]).succeeds().says(&["cordoned", "1 of 5", "4 of 10", "projection 3"]);
}

#[test]
fn o35_what_was_asked_for_is_listed_and_taken_back() {
    let trial = Trial::with_store();
    trial.run(&["intents"]).succeeds().says(&["Nobody has asked for anything"]);
    let node = trial.node("billing-1");
    trial.until_named(&node);
    trial.run(&["drain", "billing-1"]).succeeds();
    trial.run(&["freeze"]).succeeds();
    // Its work doesn't end, so that it stays pending.
    let leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
    trial.run(&["resign", "scheduler", "--timeout", "100ms"]).ends_with(75);
    trial.run(&["intents"]).succeeds().says(&["drain billing-1", "freeze", "in force", "resign"]);
    let listed = trial.run(&["intents", "--json"]).succeeds().json();
    let intents = listed["intents"].as_array().unwrap();
    let of = |kind: &str| intents.iter().find(|it| it["kind"] == kind).unwrap();
    assert_eq!(
        (&of("drain")["node"], &of("drain")["state"]),
        (&"billing-1".into(), &"in force".into())
    );
    assert_eq!((&of("resign")["lease"], &of("resign")["term"]), (&"scheduler".into(), &1.into()));
    assert!(of("freeze")["at_ms"].as_u64().unwrap() > 1_700_000_000_000);

    let id = |kind: &str| of(kind)["id"].as_str().unwrap().to_owned();
    trial.run(&["intents", "--withdraw", "nosuch"]).ends_with(1).complains(&["nosuch", "intents"]);
    trial.run(&["intents", "--withdraw", &id("drain")[..2]]).ends_with(1);
    let (drain, freeze) = (id("drain"), id("freeze"));
    // Nothing is taken back if one of them isn't there.
    trial.run(&["intents", "--withdraw", &drain, "--withdraw", "nosuch"]).ends_with(1);
    let short = ["intents", "--withdraw", &drain[..8], "--withdraw", &freeze];
    trial.run(&short).succeeds().says(&["is withdrawn: drain billing-1", "freeze"]);
    let again = trial.run(&["intents", "--withdraw", &drain, "--json"]).succeeds().json();
    assert_eq!(again["intents"][0]["withdrawn"], false);
    trial.run(&["undrain", "billing-1"]).succeeds().says(&["nothing to withdraw"]);
    let status = trial.run(&["status", "--json"]).succeeds().json();
    let left = status["intents"].as_array().unwrap();
    assert!(left.iter().all(|it| it["kind"] == "resign"), "{left:#?}");
    drop(leadership);
}

#[test]
fn o35_mistyped_names_and_empty_clusters_are_warned_of() {
    let trial = Trial::with_store();
    let empty = ["warning:", "trial", "no live member", "--cluster"];
    trial.run(&["freeze"]).succeeds().complains(&empty);
    trial.run(&["cordon", "billing-1"]).succeeds().complains(&empty);
    trial.run(&["pause", "projection/orders"]).succeeds().complains(&empty);
    trial.run(&["rollout", "hold", "projection"]).succeeds().complains(&empty);
    let quiet = trial.run(&["cordon", "billing-1", "-q"]).succeeds();
    assert_eq!(quiet.stderr, "");

    let (_node, _serving) = worker(&trial, "billing-1");
    until(&trial, &["duties", "--json"], |shown| states(shown).len() == 2);
    let cordon = trial.run(&["cordon", "biling-1"]).succeeds().says(&["biling-1 gets no more"]);
    cordon.complains(&["no live node is called biling-1", "there are billing-1", "It holds when"]);
    let pin = trial.run(&["pin", "projection/order", "--to", "billing-2"]).succeeds();
    pin.complains(&["the duty projection/order:", "projection/orders", "called billing-2"]);
    let hold = trial.run(&["rollout", "hold", "projections"]).succeeds();
    hold.complains(&["the family projections:", "there are projection"]);
    // What there is gets no warning.
    for arguments in [&["drain", "billing-1"][..], &["pause", "projection/stock"], &["freeze"]] {
        assert_eq!(trial.run(arguments).succeeds().stderr, "", "{arguments:?}");
    }
    let unknown = trial.run(&["cordon", "ghost", "--json"]).succeeds();
    assert_eq!(unknown.json()["unknown"][0], "ghost");
    unknown.complains(&["ghost"]);
}

#[test]
fn o34_a_leader_that_was_cut_off_did_not_resign() {
    let trial = Trial::with_store();
    trial.forge(&format!("member/{CUT_OFF}"), silent_member(CUT_OFF, 3000));
    trial.forge("lease/scheduler", held_lease("scheduler", 7, CUT_OFF, "billing-0"));
    let one = trial.node("billing-1");
    trial.obedient(&one, "scheduler");
    let ran = trial.run(&["resign", "scheduler", "--timeout", "60s"]).succeeds();
    let ran = ran.says(&["billing-0 never answered", "expired", "billing-1 leads"]);
    assert!(!ran.stdout.contains("resigned"), "{ran:#?}");
    trial.run(&["history", "scheduler"]).succeeds().says(&["billing-0 had expired", "at most"]);

    // The same for a transfer, and in JSON.
    for (lease, json) in [("outbox", false), ("mail", true)] {
        let id = format!("{CUT_OFF}{lease}");
        trial.forge(&format!("member/{id}"), silent_member(&id, 3000));
        trial.forge(&format!("lease/{lease}"), held_lease(lease, 7, &id, "billing-0"));
        trial.obedient(&one, lease);
        let mut arguments = vec!["transfer", lease, "--to", "billing-1", "--timeout", "60s"];
        if json {
            arguments.push("--json");
            let moved = trial.run(&arguments).succeeds().json();
            assert_eq!((&moved["ended"], &moved["term"]), (&"expired".into(), &7.into()));
        } else {
            let ran = trial.run(&arguments).succeeds().says(&["never answered", "billing-1 leads"]);
            assert!(!ran.stdout.contains("gave"), "{ran:#?}");
        }
    }
    let resigned = trial.run(&["resign", "mail", "--json"]).succeeds().json();
    assert_eq!(resigned["ended"], "freed");
}

#[test]
fn o34_evict_promises_no_return_of_a_command() {
    let trial = Trial::with_store();
    let node = trial.node("billing-1");
    trial.until_named(&node);
    let evicted = trial.run(&["evict", "billing-1"]).succeeds();
    evicted.complains(&["incumbent run", "--restart"]);
}
