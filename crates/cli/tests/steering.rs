//! Commands that steer leadership: they wait for the effect and say what happened.

mod common;

use common::Trial;

#[test]
fn resign_waits_for_the_next_leader() {
    let trial = Trial::with_store();
    let _nodes = trial.candidates("scheduler", ["billing-1", "billing-2"]);
    trial.run(&["resign", "scheduler"]).succeeds().says(&["billing-1 resigned", "billing-2 leads"]);

    let resigned = trial.run(&["resign", "scheduler", "--json"]).succeeds().json();
    assert_eq!(resigned["lease"], "scheduler");
    assert_eq!(resigned["from"], "billing-2");
    assert_eq!(resigned["term"], 2);
    // Both stand back now, so either may be first.
    assert_eq!(resigned["leader"]["term"], 3);
    assert!(resigned["took_ms"].is_u64());
}

#[test]
fn resign_without_another_candidate_says_so() {
    let trial = Trial::with_store();
    let [_one] = trial.candidates("scheduler", ["billing-1"]);
    trial.run(&["resign", "scheduler"]).succeeds().says(&["billing-1 resigned"]);
    trial.run(&["resign", "outbox"]).ends_with(1).complains(&["nobody leads \"outbox\""]);
}

#[test]
fn resign_of_one_that_goes_on_is_late() {
    let trial = Trial::with_store();
    let one = trial.node("billing-1");
    // The work under it doesn't end, so the lease isn't freed.
    let leadership = trial.elected(&mut one.campaign("scheduler").unwrap());
    trial.run(&["resign", "scheduler", "--timeout", "300ms"]).ends_with(75).complains(&[
        "scheduler",
        "300 ms",
        "billing-1 still has it",
        "--timeout",
    ]);
    drop(leadership);
}

#[test]
fn transfer_gives_the_lease_to_the_one_that_is_named() {
    let trial = Trial::with_store();
    let nodes = trial.candidates("scheduler", ["billing-1", "billing-2", "billing-3"]);
    trial
        .run(&["transfer", "scheduler", "--to", "billing-3"])
        .succeeds()
        .says(&["billing-1 gave scheduler up", "billing-3 leads"]);
    let already = trial.run(&["transfer", "scheduler", "--to", "billing-3", "--json"]).succeeds();
    assert_eq!(already.json()["leader"]["node"], "billing-3");
    let id = nodes[1].member().unwrap();
    let by_id = trial.run(&["transfer", "scheduler", "--to", &id.as_str()[..8], "--json"]);
    assert_eq!(by_id.succeeds().json()["leader"]["member"], id.as_str());
    trial
        .run(&["transfer", "scheduler", "--to", "billing-9"])
        .ends_with(1)
        .complains(&["billing-9", "alive are billing-1, billing-2, billing-3"]);
    trial.run(&["transfer", "outbox", "--to", "billing-1"]).ends_with(1);
}

#[test]
fn transfer_to_one_that_does_not_stand_fails() {
    let trial = Trial::with_store();
    let [_one] = trial.candidates("scheduler", ["billing-1"]);
    let _bystander = trial.node("billing-2");
    let ran = trial.run(&["transfer", "scheduler", "--to", "billing-2"]);
    // The old leader takes it again, or nobody has by the end of the wait.
    assert!(matches!(ran.code, 1 | 75), "{ran:#?}");
    ran.complains(&["billing-2", "a candidate?"]);
}

#[test]
fn evict_closes_the_member_and_waits_for_its_leases() {
    let trial = Trial::with_store();
    let [one, _two] = trial.candidates("scheduler", ["billing-1", "billing-2"]);
    let id = one.member().unwrap();
    let evicted = trial.run(&["evict", "billing-1", "--json"]).succeeds().json();
    assert_eq!(evicted["evicted"]["id"], id.as_str());
    let leases = evicted["leases"].as_array().unwrap();
    let scheduler = leases.iter().find(|it| it["lease"] == "scheduler").unwrap();
    assert_eq!(scheduler["leader"]["term"], 2);
    trial.run(&["evict", id.as_str()]).ends_with(1).complains(&[id.as_str(), "alive are"]);
    trial.run(&["evict", "billing-2"]).succeeds().says(&["billing-2 was evicted"]);
}

#[test]
fn two_nodes_of_one_name_are_listed() {
    let trial = Trial::with_store();
    let twins = [trial.node("billing-1"), trial.node("billing-1")];
    trial.obedient(&twins[0], "scheduler");
    trial.until_led(&twins[0], "scheduler");
    let ids = twins.each_ref().map(|node| node.member().unwrap());
    let ids = ids.each_ref().map(|id| id.as_str());
    for arguments in [&["evict", "billing-1"][..], &["transfer", "scheduler", "--to", "billing-1"]]
    {
        let ran = trial.run(arguments).ends_with(64);
        ran.complains(&["2 live members", ids[0], ids[1], "billing-1:80"]);
    }
    trial.run(&["evict", ids[1]]).succeeds().says(&[ids[1]]);
}
