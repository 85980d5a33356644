//! Who runs a duty, from memory.
#![allow(clippy::unwrap_used, reason = "this is test code, helpers too")]

mod common;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::ledger::Ledger;
use common::{Moody, soon, steady, until};
use incumbent::{Cluster, Node, OpenStore, Owners, family};

fn owner(owners: &Owners, duty: &str) -> Option<String> {
    Some(owners.owner(duty)?.owner?.node)
}

async fn serving(store: &Moody, name: &str, ledger: &Ledger) -> Node {
    let node = soon(steady(name).address(format!("{name}:80")).join(store.clone())).await.unwrap();
    let (ledger, runs) = (ledger.clone(), name.to_owned());
    let shards = family("shard").duties(["0", "1", "2", "3"]);
    node.serve(shards.run(move |duty| ledger.clone().run(runs.clone(), duty))).unwrap();
    node
}

#[tokio::test]
async fn owners_are_known_from_memory_and_followed_as_duties_move() {
    let (store, ledger) = (Moody::new(), Ledger::default());
    let a = serving(&store, "a", &ledger).await;
    ledger.spread(&[("a", 4)]).await;
    let looking = store.beside();
    let cluster = Cluster::new(OpenStore::from(looking.clone()), "test").unwrap();
    let owners = cluster.owners("shard").unwrap();
    soon(owners.looked()).await;
    until("all are known", || (0..4).all(|n| owner(&owners, &n.to_string()).is_some())).await;
    let known = owners.owner("2").unwrap();
    let named = known.owner.unwrap();
    assert_eq!((named.node.as_str(), named.address.as_deref()), ("a", Some("a:80")));
    assert_eq!(Some(named.member), a.member());
    assert_eq!(owners.owner("no such duty").unwrap().owner, None);
    assert!(owners.term("2").is_none(), "who only looks runs nothing");

    let b = serving(&store, "b", &ledger).await;
    ledger.spread(&[("a", 2), ("b", 2)]).await;
    let agrees = |owners: &Owners| {
        ledger.running().iter().all(|(duty, node)| owner(owners, duty).as_ref() == Some(node))
    };
    until("the copy follows", || agrees(&owners)).await;
    let mut told = owners.clone();
    soon(told.changed()).await;
    soon(b.leave()).await.unwrap();
    ledger.spread(&[("a", 4)]).await;
    until("the copy follows", || agrees(&owners)).await;
    // That was before anybody waited for it.
    soon(told.changed()).await;
    ledger.check();
}

#[tokio::test]
async fn no_question_asks_the_store() {
    let (store, ledger) = (Moody::new(), Ledger::default());
    let _node = serving(&store, "a", &ledger).await;
    ledger.spread(&[("a", 4)]).await;
    let looking = store.beside();
    let cluster = Cluster::new(OpenStore::from(looking.clone()), "test").unwrap();
    let owners = cluster.owners("shard").unwrap();
    until("it is known", || owner(&owners, "1").is_some()).await;
    let exchanges = || looking.mood().exchanges.load(Ordering::SeqCst);
    let before = exchanges();
    // In one go, and with a store that answers no more: what is asked comes from memory.
    looking.hang();
    for _ in 0..100_000 {
        assert_eq!(owner(&owners, "1").as_deref(), Some("a"));
    }
    let sent = exchanges() - before;
    assert!(sent <= 2, "the copy looks by itself now and then, but not {sent} times");

    until("it ages", || owners.owner("1").unwrap().age > Duration::from_secs(4)).await;
    assert_eq!(owner(&owners, "1").as_deref(), Some("a"), "that is the last that was heard");
    looking.recover();
    until("it is fresh again", || owners.owner("1").unwrap().age < Duration::from_secs(3)).await;
}

#[tokio::test]
async fn while_nothing_happens_only_what_has_changed_is_read() {
    let (store, ledger) = (Moody::new(), Ledger::default());
    let _node = serving(&store, "a", &ledger).await;
    ledger.spread(&[("a", 4)]).await;
    let looking = store.beside();
    let cluster = Cluster::new(OpenStore::from(looking.clone()), "test").unwrap();
    let owners = cluster.owners("shard").unwrap();
    // A list is read in two exchanges at most: three more are looks that needed none.
    let without_list = || looking.mood().since_list.load(Ordering::SeqCst);
    until("looks without a list", || without_list() >= 4).await;
    let known = owners.owner("1").unwrap();
    assert_eq!(known.owner.unwrap().node, "a");
    assert!(known.age < Duration::from_secs(4), "each is as good as a list: {:?}", known.age);
}

#[tokio::test]
async fn without_hints_owners_are_followed_too() {
    let (store, ledger) = (Moody::new(), Ledger::default());
    let _a = serving(&store, "a", &ledger).await;
    ledger.spread(&[("a", 4)]).await;
    let looking = store.beside();
    looking.mood().silent.store(true, Ordering::SeqCst);
    let cluster = Cluster::new(OpenStore::from(looking.clone()), "test").unwrap();
    let owners = cluster.owners("shard").unwrap();
    until("all are known", || (0..4).all(|n| owner(&owners, &n.to_string()).is_some())).await;
    // What happens between two lists is seen by asking about what is known.
    let without_list = || looking.mood().since_list.load(Ordering::SeqCst);
    until("a look without a list", || without_list() >= 2).await;
    let b = serving(&store, "b", &ledger).await;
    ledger.spread(&[("a", 2), ("b", 2)]).await;
    let agrees =
        || ledger.running().iter().all(|(duty, node)| owner(&owners, duty).as_ref() == Some(node));
    until("the copy follows", agrees).await;
    soon(b.leave()).await.unwrap();
    ledger.spread(&[("a", 4)]).await;
    until("the copy follows", agrees).await;
    ledger.check();
}

#[tokio::test]
async fn a_node_asks_its_own_trust_about_what_it_runs_itself() {
    let (store, ledger) = (Moody::new(), Ledger::default());
    let path = store.beside();
    let a = serving(&path, "a", &ledger).await;
    ledger.spread(&[("a", 4)]).await;
    let owners = a.owners("shard").unwrap();
    soon(owners.looked()).await;
    until("it knows", || owner(&owners, "3").is_some()).await;
    assert_eq!(owners.owner("3").unwrap().age, Duration::ZERO);
    let term = owners.term("3").unwrap();
    assert!(term.is_held());
    path.fail();
    soon(term.lost()).await;
    assert_eq!(owner(&owners, "3"), None, "it doesn't name itself, whatever its copy says");
    assert!(owners.term("3").is_none());
}

#[tokio::test]
async fn what_is_no_family_is_refused() {
    let cluster = Cluster::new(OpenStore::from(Moody::new()), "test").unwrap();
    assert!(cluster.owners("a/b").is_err());
    assert!(cluster.owners("").is_err());
}
