//! Nodes that watch the processes of those they wait for. Here these are processes that sleep, and
//! the node that named them goes on, so that both sides of a closing can be seen.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code, helpers too")]

mod common;

use std::process::{Child, Command};
use std::time::Duration;

use common::{memory, pause, soon};
use incumbent::{Builder, Loss, MemberState, Node, witness};

/// Nobody waits so long in these tests.
const TTL: Duration = Duration::from_secs(90);

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn builder(name: &str) -> Builder {
    Node::builder().cluster("test").name(name).ttl(TTL).without_membership()
}

#[tokio::test]
async fn who_waits_on_the_same_machine_closes_the_dead_at_once() {
    let (store, process) = (memory(), sleeper());
    let evidence = witness::evidence(&[process.id()], None).unwrap();
    let holder = soon(builder("holder").evidence(evidence).join(&store)).await.unwrap();
    let mut campaign = holder.campaign("lease").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();

    let next = soon(builder("next").join(&store)).await.unwrap();
    let mut candidate = next.campaign("lease").unwrap();
    let early = tokio::time::timeout(Duration::from_millis(300), candidate.elected()).await;
    assert!(early.is_err(), "the process lives");
    end(process);
    assert_eq!(soon(candidate.elected()).await.unwrap().number(), 2);
    // Whoever is closed knows it by its next beat at the latest, or by asking.
    assert!(!leadership.confirm().await.unwrap());
    let lost = soon(leadership.lost()).await.why;
    assert!(matches!(lost, Loss::Superseded | Loss::Closed(MemberState::Expired)), "{lost:?}");
}

#[tokio::test]
async fn one_that_was_dead_before_anybody_looked_is_closed_too() {
    let (store, process) = (memory(), sleeper());
    let evidence = witness::evidence(&[process.id()], None).unwrap();
    let holder = soon(builder("holder").evidence(evidence).join(&store)).await.unwrap();
    let mut campaign = holder.campaign("lease").unwrap();
    let _leadership = soon(campaign.elected()).await.unwrap();
    end(process);
    let next = soon(builder("next").join(&store)).await.unwrap();
    let mut candidate = next.campaign("lease").unwrap();
    assert_eq!(soon(candidate.elected()).await.unwrap().number(), 2);
}

#[tokio::test]
async fn without_evidence_or_without_looking_the_ttl_is_waited_for() {
    let store = memory();
    let process = sleeper();
    let evidence = witness::evidence(&[process.id()], None).unwrap();
    let seen = soon(builder("seen").evidence(evidence).join(&store)).await.unwrap();
    let silent = soon(builder("silent").join(&store)).await.unwrap();
    let (mut one, mut two) = (seen.campaign("one").unwrap(), silent.campaign("two").unwrap());
    let held = (soon(one.elected()).await.unwrap(), soon(two.elected()).await.unwrap());
    end(process);
    let blind = soon(builder("blind").without_witness().join(&store)).await.unwrap();
    let looking = soon(builder("looking").join(&store)).await.unwrap();
    let (_one, _two) = (blind.campaign("one").unwrap(), looking.campaign("two").unwrap());
    pause(700).await;
    assert!(held.0.is_held() && held.1.is_held());
    assert!(held.0.confirm().await.unwrap() && held.1.confirm().await.unwrap());
}
