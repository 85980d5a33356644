//! Duties: each runs on one node, where the leader wants it, for as long as it is wanted there.
#![allow(clippy::unwrap_used, reason = "this is test code, also where it is no test")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::ledger::Ledger;
use common::{memory, soon, steady, until};
use incumbent::{
    DutyDescription, Family, FamilyWork, Node, OpenStore, ServeError, Serving, family,
};

/// Both stores; nodes on the second have a connection of their own each, as processes would.
async fn stores(directory: &tempfile::TempDir) -> Vec<OpenStore> {
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    vec![memory(), incumbent::open(&url).await.unwrap()]
}

fn twelve() -> Vec<String> {
    (1..=12).map(|number| format!("duty-{number:02}")).collect()
}

fn recorded(ledger: &Ledger, node: &Node, family: Family) -> FamilyWork {
    let (ledger, node) = (ledger.clone(), node.name().to_owned());
    family.run(move |duty| ledger.clone().run(node.clone(), duty))
}

fn serve(ledger: &Ledger, node: &Node) -> Serving {
    node.serve(recorded(ledger, node, family("projection").duties(twelve()))).unwrap()
}

#[tokio::test]
async fn the_first_node_runs_all_and_the_second_takes_half() {
    let directory = tempfile::tempdir().unwrap();
    for store in stores(&directory).await {
        let ledger = Ledger::default();
        let a = soon(steady("a").join(&store)).await.unwrap();
        let serving = serve(&ledger, &a);
        ledger.spread(&[("a", 12)]).await;
        until("the count is told", || serving.running() == 12).await;
        let b = soon(steady("b").join(&store)).await.unwrap();
        let _serving = serve(&ledger, &b);
        ledger.spread(&[("a", 6), ("b", 6)]).await;
        soon(a.leave()).await.unwrap();
        ledger.spread(&[("b", 12)]).await;
        soon(b.leave()).await.unwrap();
        assert!(ledger.running().is_empty(), "F10: work has ended when the node has left");
        ledger.check();
    }
}

#[tokio::test]
async fn the_list_can_change_while_it_is_served() {
    let ledger = Ledger::default();
    let node = soon(steady("a").ttl(Duration::from_secs(4)).join(memory())).await.unwrap();
    let serving =
        node.serve(recorded(&ledger, &node, family("projection").duties(["orders", "invoices"])));
    let serving = serving.unwrap();
    ledger.spread(&[("a", 2)]).await;
    serving.add("returns").unwrap();
    ledger.spread(&[("a", 3)]).await;
    serving.remove("orders");
    until("it is stopped", || !ledger.running().contains_key("orders")).await;
    assert!(serving.add("").is_err());
    assert!(serving.replace(["fine", "not\nfine"]).is_err());
    assert_eq!(serving.duties(), ["invoices", "returns"], "nothing was changed");
    serving.replace(["x", "y", "z", "invoices"]).unwrap();
    ledger.spread(&[("a", 4)]).await;
    assert_eq!(ledger.starts("invoices"), 1, "what stays is left alone");
    soon(serving.stop()).await;
    assert!(ledger.running().is_empty());
    assert_eq!(serving.running(), 0);
    let again = node.serve(recorded(&ledger, &node, family("projection").duties(["orders"])));
    let _again = again.unwrap();
    ledger.spread(&[("a", 1)]).await;
    ledger.check();
}

#[tokio::test]
async fn a_list_that_cannot_be_computed_keeps_the_former_one() {
    let ledger = Ledger::default();
    let node = soon(steady("a").join(memory())).await.unwrap();
    let (calls, broken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, fails) = (Arc::clone(&calls), Arc::clone(&broken));
    let computed = family("projection").refresh(Duration::from_millis(50)).duties_with(move || {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        let fails = fails.load(Ordering::SeqCst);
        assert!(!fails || call % 2 == 0, "as planned");
        async move {
            if fails {
                Err("as planned")?
            }
            Ok(if call == 0 { vec!["one"] } else { vec!["one", "two"] })
        }
    });
    let serving = node.serve(recorded(&ledger, &node, computed)).unwrap();
    ledger.spread(&[("a", 2)]).await;
    broken.store(true, Ordering::SeqCst);
    let before = calls.load(Ordering::SeqCst);
    until("it is tried again", || calls.load(Ordering::SeqCst) > before + 4).await;
    assert_eq!(serving.duties(), ["one", "two"]);
    assert_eq!(ledger.loads().get("a"), Some(&2), "an error and a panic remove nothing");
}

#[tokio::test]
async fn duties_run_only_where_their_version_and_labels_are() {
    let store = memory();
    let ledger = Ledger::default();
    let old = soon(steady("old").join(&store)).await.unwrap();
    let list = |version: &str| {
        let plain = (0..4).map(|number| DutyDescription::named(format!("plain-{number}")));
        let named = (0..4).map(|number| format!("versioned-{number}"));
        let versioned = named.map(|name| DutyDescription::named(name).version(version));
        plain.chain(versioned).collect::<Vec<_>>()
    };
    let served = family("projection").version("2").duties(list("2"));
    let _old = old.serve(recorded(&ledger, &old, served)).unwrap();
    ledger.spread(&[("old", 8)]).await;
    let new = soon(steady("new").label("disk", "fast").join(&store)).await.unwrap();
    let mut duties = list("3");
    duties.push(DutyDescription::named("picky").selector("disk", "fast"));
    duties.push(DutyDescription::named("nowhere").selector("disk", "gold"));
    let served = family("projection").version("2").version("3").duties(duties);
    let _new = new.serve(recorded(&ledger, &new, served)).unwrap();
    until("version 3 runs on the node that knows it", || {
        let running = ledger.running();
        let on_new = |name: &String| running.get(name).is_some_and(|node| node == "new");
        (0..4).all(|number| on_new(&format!("versioned-{number}"))) && on_new(&"picky".to_owned())
    })
    .await;
    assert!(!ledger.running().contains_key("nowhere"), "F40");
    until("the others make room", || ledger.loads().get("old") == Some(&4)).await;
    ledger.check();
}

#[tokio::test]
async fn capacity_is_kept_when_nodes_are_lost() {
    // F39: what doesn't fit runs nowhere, instead of crushing those that are left.
    let store = memory();
    let ledger = Ledger::default();
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        let node = soon(steady(name).capacity(5).join(&store)).await.unwrap();
        let _ = serve(&ledger, &node);
        nodes.push(node);
    }
    ledger.spread(&[("a", 4), ("b", 4), ("c", 4)]).await;
    let gone = nodes.pop().unwrap();
    soon(gone.leave()).await.unwrap();
    ledger.spread(&[("a", 5), ("b", 5)]).await;
    ledger.check();
}

#[tokio::test]
async fn ids_may_hold_anything_that_can_be_printed() {
    let directory = tempfile::tempdir().unwrap();
    let long = "x".repeat(1000);
    let other = format!("{}y", "x".repeat(999));
    for store in stores(&directory).await {
        let ledger = Ledger::default();
        let node = soon(steady("a").join(&store)).await.unwrap();
        let names = ["a,b", "a/b", "a b", "☃ ünïcode", "100%", "..", &long, &other];
        let _serving =
            node.serve(recorded(&ledger, &node, family("odd, family").duties(names))).unwrap();
        ledger.spread(&[("a", names.len())]).await;
        for name in names {
            assert!(ledger.running().contains_key(name), "F42: {name}");
        }
        soon(node.leave()).await.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_with_a_reason() {
    let store = memory();
    let node = soon(steady("a").join(&store)).await.unwrap();
    let idle = |name: &str, duties: &[&str]| {
        family(name).duties(duties.to_vec()).run(|_| async { Ok(()) })
    };
    assert!(matches!(node.serve(idle("a/b", &[])), Err(ServeError::Name(_))));
    assert!(matches!(node.serve(idle("a", &[""])), Err(ServeError::Name(_))));
    let _first = node.serve(idle("a", &[])).unwrap();
    assert!(matches!(node.serve(idle("a", &[])), Err(ServeError::Duplicate { .. })));
    let hermit = soon(steady("hermit").without_membership().join(&store)).await.unwrap();
    let refused = hermit.serve(idle("a", &[])).unwrap_err();
    assert!(refused.to_string().contains("membership"), "{refused}");
    soon(node.leave()).await.unwrap();
    assert!(matches!(node.serve(idle("b", &[])), Err(ServeError::Left)));
}

#[tokio::test]
async fn alone_all_duties_start_at_once() {
    let store = incumbent::open("solo:").await.unwrap();
    // So long that nothing but the start itself can make them run in time.
    let builder = Node::builder().name("solo").ttl(Duration::from_secs(600));
    let node = soon(builder.join(store)).await.unwrap();
    let ledger = Ledger::default();
    let _first = serve(&ledger, &node);
    let more = family("more").duties((0..500).map(|number| format!("more-{number}")));
    let _second = node.serve(recorded(&ledger, &node, more)).unwrap();
    ledger.spread(&[("solo", 512)]).await;
    soon(node.leave()).await.unwrap();
    assert!(ledger.running().is_empty());
    ledger.check();
}

#[tokio::test]
async fn a_composite_runs_its_parts_as_one() {
    let node = soon(steady("a").join(memory())).await.unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let composite = DutyDescription::named("tenants-a-to-c").parts(["a", "b", "c"]);
    let work = family("poller").duties([composite, DutyDescription::named("d")]).run(move |duty| {
        let tell = tell.clone();
        async move {
            let _ = tell.send((duty.name().to_owned(), duty.parts().to_vec()));
            duty.token().cancelled().await;
            Ok(())
        }
    });
    let _serving = node.serve(work).unwrap();
    let mut started = [soon(told.recv()).await.unwrap(), soon(told.recv()).await.unwrap()];
    started.sort();
    let parts = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    assert_eq!(started[0], ("d".to_owned(), Vec::new()));
    assert_eq!(started[1], ("tenants-a-to-c".to_owned(), parts(&["a", "b", "c"])));
    soon(node.leave()).await.unwrap();
}

#[tokio::test]
async fn each_start_of_a_duty_gets_a_clone_of_what_it_needs() {
    let node = soon(steady("a").join(&memory())).await.unwrap();
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let work = family("projection").duties(["orders", "returns"]).run_with(
        started,
        |started, duty| async move {
            started.send(duty.name().to_owned())?;
            duty.lost().await;
            Ok(())
        },
    );
    let serving = node.serve(work).unwrap();
    let mut names = vec![soon(starts.recv()).await.unwrap(), soon(starts.recv()).await.unwrap()];
    names.sort();
    assert_eq!(names, ["orders", "returns"]);
    soon(serving.stop()).await;
}
