//! What operators see of duties, and what they ask for.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "this is test code, also where it is no test"
)]

mod common;

use std::future::Future;
use std::time::Duration;

use common::ledger::Ledger;
use common::{memory, soon, steady};
use incumbent::placement::{Grid, Place, Strategy};
use incumbent::{
    Cluster, ClusterError, DutyCondition, DutyDescription, DutyStanding, Node, OpenStore, Overdue,
    Strictness, Workload, family,
};

async fn node(store: &OpenStore, name: &str, ledger: &Ledger) -> Node {
    let builder = steady(name).ttl(Duration::from_secs(4)).address(format!("{name}:1"));
    let node = soon(builder.join(store)).await.unwrap();
    let (ledger, name) = (ledger.clone(), name.to_owned());
    let duties = ["a", "b", "c", "d"];
    let work = family("f").duties(duties).run(move |duty| {
        duty.progress(format!("{} works", duty.name()));
        ledger.clone().run(name.clone(), duty)
    });
    node.serve(work).unwrap();
    node
}

/// Asks until the answer is as wanted, because reports and plans take a beat.
async fn eventually<T, F, Fut>(what: &str, mut ask: F, wanted: impl Fn(&T) -> bool) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, ClusterError>>,
    T: std::fmt::Debug,
{
    let mut last = String::new();
    for _ in 0..600 {
        let answer = soon(ask()).await.unwrap();
        if wanted(&answer) {
            return answer;
        }
        last = format!("{answer:?}");
        common::pause(50).await;
    }
    panic!("never came true: {what}; the last answer was {last}");
}

async fn standing(cluster: &Cluster, duty: &str, condition: DutyCondition) -> DutyStanding {
    let wanted = |standing: &Option<DutyStanding>| {
        standing.as_ref().is_some_and(|standing| standing.condition == condition)
    };
    let what = format!("{duty} is {condition}");
    eventually(&what, || cluster.duty(duty), wanted).await.unwrap()
}

#[tokio::test]
async fn anybody_can_see_how_duties_stand_and_where_they_run() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    for store in [memory(), incumbent::open(&url).await.unwrap()] {
        let cluster = Cluster::new(&store, "test").unwrap();
        assert!(soon(cluster.duties()).await.unwrap().is_empty());
        assert_eq!(soon(cluster.where_is("f/a")).await.unwrap(), None);
        assert_eq!(soon(cluster.duty("f/a")).await.unwrap(), None);
        assert_eq!(soon(cluster.explain("f/a")).await.unwrap(), None);
        let ledger = Ledger::default();
        let first = node(&store, "first", &ledger).await;
        ledger.spread(&[("first", 4)]).await;
        let all = |duties: &Vec<DutyStanding>| {
            let well = |duty: &DutyStanding| {
                duty.condition == DutyCondition::Active && duty.progress.is_some()
            };
            duties.len() == 4 && duties.iter().all(well)
        };
        let duties = eventually("all are active", || cluster.duties(), all).await;
        let a = duties.first().unwrap();
        assert_eq!((a.id.as_str(), a.node.as_deref(), a.term), ("f/a", Some("first"), 1));
        assert_eq!(a.address.as_deref(), Some("first:1"));
        assert_eq!(a.progress.as_deref(), Some("a works"));
        let place = soon(cluster.where_is("f/a")).await.unwrap().unwrap();
        assert_eq!((place.node.as_str(), place.address.as_deref()), ("first", Some("first:1")));
        let leases = soon(cluster.leases()).await.unwrap();
        assert_eq!(leases.len(), 1, "the leader's alone: {leases:?}");
        first.tell_load(7);
        let id = a.member.clone().unwrap();
        let loaded = |work: &Workload| work.loads.get(&id) == Some(&7);
        let work = eventually("its load is known", || cluster.workload(), loaded).await;
        assert_eq!(work.duties.len(), 4);
        let moves = soon(cluster.moves()).await.unwrap();
        assert_eq!(work.moves, moves);
        assert!(moves.iter().any(|moved| moved.to.as_deref() == Some("first")), "{moves:?}");
        assert!(
            soon(cluster.plan()).await.unwrap().moves.is_empty(),
            "a steady plan moves nothing"
        );
        let explained = soon(cluster.explain("f/a")).await.unwrap().unwrap().to_string();
        assert!(explained.contains("active on first"), "{explained}");
        soon(first.leave()).await.unwrap();
    }
}

#[tokio::test]
async fn a_paused_duty_stops_and_stays_off_although_the_leader_changes() {
    // F44: elsewhere pausing started the thing, or a restart forgot the pause.
    let store = memory();
    let ledger = Ledger::default();
    let first = node(&store, "first", &ledger).await;
    ledger.spread(&[("first", 4)]).await;
    let cluster = Cluster::new(&store, "test").unwrap();
    let paused = soon(cluster.pause("f/a")).await.unwrap();
    assert!(paused.unknown.is_empty());
    assert_eq!(soon(cluster.pause("f/a")).await.unwrap(), paused, "asked twice, it is one intent");
    standing(&cluster, "f/a", DutyCondition::Paused).await;
    let _second = node(&store, "second", &ledger).await;
    soon(first.leave()).await.unwrap();
    ledger.spread(&[("second", 3)]).await;
    assert!(!ledger.running().contains_key("a"));
    assert_eq!(ledger.starts("a"), 1);
    let resumed = soon(cluster.resume("f/a")).await.unwrap();
    assert_eq!(resumed.intents, paused.intents);
    ledger.spread(&[("second", 4)]).await;
    assert!(soon(cluster.resume("f/a")).await.unwrap().intents.is_empty(), "nothing is left");
    ledger.check();
}

#[tokio::test]
async fn pins_moves_cordons_and_drains_are_obeyed() {
    let store = memory();
    let ledger = Ledger::default();
    let _one = node(&store, "one", &ledger).await;
    let _two = node(&store, "two", &ledger).await;
    ledger.spread(&[("one", 2), ("two", 2)]).await;
    let cluster = Cluster::new(&store, "test").unwrap();
    let on =
        |name: &str, node: &str| ledger.running().get(name).is_some_and(|running| running == node);
    soon(cluster.freeze()).await.unwrap();
    soon(cluster.drain("one")).await.unwrap();
    ledger.spread(&[("two", 4)]).await;
    soon(cluster.undrain("one")).await.unwrap();
    soon(cluster.pin("f/a", "one", Strictness::Required)).await.unwrap();
    common::until("a follows its pin", || on("a", "one")).await;
    soon(cluster.pin("f/a", "two", Strictness::Required)).await.unwrap();
    common::until("a follows its new pin", || on("a", "two")).await;
    let pins = soon(cluster.intents()).await.unwrap();
    assert_eq!(pins.len(), 2, "the new pin replaced the old one, beside the freeze: {pins:?}");
    soon(cluster.move_duty("f/b", "one")).await.unwrap();
    common::until("b has moved", || on("b", "one")).await;
    let only_standing = |open: &Vec<incumbent::Intent>| open.len() == 2;
    eventually("the move is done with", || cluster.intents(), only_standing).await;
    let explained = soon(cluster.explain("f/a")).await.unwrap().unwrap().to_string();
    assert!(explained.contains("wants it on two, nowhere else"), "{explained}");
    assert!(explained.contains("frozen"), "{explained}");
    soon(cluster.cordon("one")).await.unwrap();
    soon(cluster.unpin("f/a")).await.unwrap();
    soon(cluster.thaw()).await.unwrap();
    let preview = soon(cluster.plan()).await.unwrap();
    assert!(preview.moves.iter().all(|step| step.to.as_deref() != Some("one")), "{preview:?}");
    soon(cluster.uncordon("one")).await.unwrap();
    ledger.spread(&[("one", 2), ("two", 2)]).await;
    assert!(soon(cluster.intents()).await.unwrap().is_empty());
    ledger.check();
}

#[tokio::test]
async fn what_nobody_knows_can_be_named_without_harm() {
    // F43: elsewhere such a rule poisoned every evaluation.
    let store = memory();
    let ledger = Ledger::default();
    let _one = node(&store, "one", &ledger).await;
    let cluster = Cluster::new(&store, "test").unwrap();
    let asked = soon(cluster.pin("f/ghost", "nowhere", Strictness::Required)).await.unwrap();
    assert_eq!(asked.unknown, ["f/ghost", "nowhere"]);
    assert_eq!(soon(cluster.pause("g/ghost")).await.unwrap().unknown, ["g/ghost"]);
    assert_eq!(soon(cluster.drain("nowhere")).await.unwrap().unknown, ["nowhere"]);
    assert_eq!(soon(cluster.move_duty("f/ghost", "one")).await.unwrap().unknown, ["f/ghost"]);
    for wrong in ["", "lonely", "a\n/b"] {
        assert!(
            matches!(soon(cluster.pause(wrong)).await, Err(ClusterError::Name(_))),
            "{wrong:?}"
        );
    }
    ledger.spread(&[("one", 4)]).await;
}

#[tokio::test]
async fn failing_done_and_unplaced_duties_say_so() {
    let store = memory();
    let node = soon(steady("one").ttl(Duration::from_secs(4)).join(&store)).await.unwrap();
    let duties = ["failing", "done"].map(DutyDescription::named).into_iter();
    let picky = DutyDescription::named("picky").selector("disk", "gold");
    let served = family("f").duties(duties.chain([picky])).on_overdue(Overdue::Wait);
    let work = served.run(|duty| async move {
        if duty.name() == "failing" { Err("as planned".into()) } else { Ok(()) }
    });
    let _serving = node.serve(work).unwrap();
    let cluster = node.cluster();
    standing(cluster, "f/done", DutyCondition::Done).await;
    let failing = |duty: &Option<DutyStanding>| {
        let condition = duty.as_ref().map(|duty| &duty.condition);
        matches!(condition, Some(DutyCondition::Failing { error, times, .. })
            if error == "as planned" && *times >= 1)
    };
    eventually("it fails", || cluster.duty("f/failing"), failing).await;
    let reason = "no node may run it: 1 lacks a selected label";
    standing(cluster, "f/picky", DutyCondition::Unassigned(reason.to_owned())).await;
    let preview = soon(cluster.plan()).await.unwrap();
    assert_eq!(preview.unplaced.len(), 1, "{preview:?}");
    let explained = soon(cluster.explain("f/picky")).await.unwrap().unwrap().to_string();
    assert!(explained.contains("lacks a selected label"), "{explained}");
}

#[derive(Debug)]
struct Whatever;

impl Place for Whatever {
    fn place(&self, _: &mut Grid<'_, '_>) {}
}

#[tokio::test]
async fn a_dry_run_goes_by_the_leaders_strategy_and_says_what_it_cannot_know() {
    let store = memory();
    let join = |name: &str| {
        let builder = steady(name).ttl(Duration::from_secs(4));
        let builder = builder.placement(Strategy::PreferredNode("one".to_owned()));
        builder.family_placement("mine", Whatever).join(&store)
    };
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        let node = soon(join(name)).await.unwrap();
        let work = family("f").duties(["a", "b", "c", "d"]).run(|duty| async move {
            duty.token().cancelled().await;
            Ok(())
        });
        node.serve(work).unwrap();
        nodes.push(node);
    }
    let cluster = Cluster::new(&store, "test").unwrap();
    let all_on_one = |duties: &Vec<DutyStanding>| {
        duties.len() == 4 && duties.iter().all(|duty| duty.node.as_deref() == Some("one"))
    };
    eventually("all run where they are preferred", || cluster.duties(), all_on_one).await;
    let known = |preview: &incumbent::Preview| preview.unknown.is_some();
    let preview = eventually("the leader has said how it places", || cluster.plan(), known).await;
    assert!(preview.moves.is_empty(), "{preview:?}");
    assert!(preview.unknown.unwrap().contains("mine"));
    let even = soon(cluster.plan_with(Strategy::Even)).await.unwrap();
    assert_eq!(even.moves.len(), 2, "{even:?}");
}
