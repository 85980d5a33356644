//! Settings: checked together, from the environment, and where a name comes from.

mod common;

use std::collections::HashMap;
use std::time::Duration;

use common::{memory, soon};
use incumbent::{EnvironmentError, JoinError, Node, OpenError};

#[tokio::test]
async fn times_that_do_not_fit_are_refused_with_the_reason() {
    let second = Duration::from_secs(1);
    let short = Node::builder().name("a").ttl(second).join(memory()).await;
    assert!(short.unwrap_err().to_string().contains("3s"), "the least ttl is named");
    let slow = Node::builder().name("a").beat(15 * second).join(memory()).await;
    assert!(matches!(slow, Err(JoinError::Timing(_))), "F16");
    let hung = Node::builder().name("a").request_timeout(10 * second).join(memory()).await;
    assert!(matches!(hung, Err(JoinError::Timing(_))));
    let thin = Node::builder().name("a").margin(Duration::ZERO).join(memory()).await;
    assert!(matches!(thin, Err(JoinError::Timing(_))));
}

#[tokio::test]
async fn names_are_checked_and_may_be_provided() {
    let empty = Node::builder().name("").join(memory()).await;
    assert!(matches!(empty, Err(JoinError::Name(_))), "F2");
    let empty = Node::builder().cluster("").name("a").join(memory()).await;
    assert!(matches!(empty, Err(JoinError::Name(_))));
    let node = Node::builder().name_from(|| "pod-7".to_owned()).join(memory()).await.unwrap();
    assert_eq!(node.name(), "pod-7");
    let node = Node::builder().join(memory()).await.unwrap();
    assert!(!node.name().is_empty(), "the host's name");
}

#[tokio::test]
async fn a_node_says_who_it_is() {
    let store = memory();
    let node = Node::builder()
        .cluster("test")
        .name("a")
        .address("10.0.0.7:80")
        .label("zone", "west")
        .join(&store)
        .await
        .unwrap();
    let member = soon(async {
        loop {
            let members = node.cluster().members().await.unwrap();
            if let Some(member) = members.into_iter().find(|member| member.node == "a") {
                return member;
            }
            common::pause(5).await;
        }
    })
    .await;
    assert_eq!(member.address.as_deref(), Some("10.0.0.7:80"));
    assert_eq!(member.labels.get("zone").map(String::as_str), Some("west"));
    assert_eq!(member.ttl, Some(Duration::from_secs(15)));
    if cfg!(target_os = "linux") {
        assert_eq!(member.host.map(|host| host.pid), Some(std::process::id()));
    }
}

#[tokio::test]
async fn the_environment_is_understood() {
    let given: HashMap<&str, &str> = [
        ("INCUMBENT_STORE", "memory:environment"),
        ("INCUMBENT_CLUSTER", "billing"),
        ("INCUMBENT_NODE", "billing-1"),
        ("INCUMBENT_ADDRESS", "10.0.0.7:80"),
        ("INCUMBENT_TTL", "20s"),
    ]
    .into();
    let lookup = |variable: &str| given.get(variable).map(|value| (*value).to_owned());
    let builder = Node::builder().from_lookup(lookup).unwrap();
    let node = builder.open_and_join().await.unwrap();
    assert_eq!((node.name(), node.cluster().name()), ("billing-1", "billing"));
    assert_eq!(node.timing().ttl, Duration::from_secs(20));

    let nowhere = Node::builder().from_lookup(|_| None).unwrap().open_and_join().await;
    let said = nowhere.unwrap_err().to_string();
    assert!(said.contains("INCUMBENT_STORE") && said.contains("sqlite:app.db"), "{said}");
    let lookup = |variable: &str| (variable == "INCUMBENT_TTL").then(|| "soon".to_owned());
    let bad = Node::builder().from_lookup(lookup).unwrap_err();
    assert!(matches!(&bad, EnvironmentError::Bad { variable: "INCUMBENT_TTL", .. }), "{bad}");
    assert!(bad.to_string().contains("soon") && bad.to_string().contains("15s"), "{bad}");
    // O24: a variable that a script forgot must not make a cluster of its own.
    for empty in ["INCUMBENT_STORE", "INCUMBENT_CLUSTER"] {
        let bad = Node::builder().from_lookup(|it| (it == empty).then(String::new)).unwrap_err();
        assert!(bad.to_string().contains(empty) && bad.to_string().contains("unset"), "{bad}");
    }
}

#[tokio::test]
async fn solo_leads_at_once_and_every_opening_is_its_own() {
    let node = Node::builder().join(incumbent::open("solo:").await.unwrap()).await.unwrap();
    let began = incumbent::clock::now();
    let mut campaign = node.campaign("scheduler").unwrap();
    let _leadership = soon(campaign.elected()).await.unwrap();
    assert!(incumbent::clock::now().since(began) < Duration::from_secs(2), "ttl is 15 s");
    let other = Node::builder().join(incumbent::open("solo:").await.unwrap()).await.unwrap();
    assert!(soon(other.leader("scheduler")).await.unwrap().is_none());
}

#[tokio::test]
async fn memory_is_shared_by_its_name() {
    let one = Node::builder().join(incumbent::open("memory:shared").await.unwrap()).await.unwrap();
    let two = Node::builder().join(incumbent::open("memory:shared").await.unwrap()).await.unwrap();
    let mut campaign = one.campaign("scheduler").unwrap();
    let _leadership = soon(campaign.elected()).await.unwrap();
    assert!(soon(two.leader("scheduler")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_store_that_is_unknown_or_broken_is_named() {
    let unknown = incumbent::open("mongo://me:secret@db").await.unwrap_err();
    assert!(matches!(&unknown, OpenError::UnknownScheme { .. }));
    let said = unknown.to_string();
    assert!(
        said.contains("mongo") && said.contains("memory:") && !said.contains("secret"),
        "{said}"
    );
    if cfg!(feature = "sqlite") {
        let broken = incumbent::open("sqlite:/nowhere/at/all/app.db").await.unwrap_err();
        assert!(broken.to_string().contains("/nowhere/at/all/app.db"), "{broken}");
    } else {
        let missing = incumbent::open("sqlite:app.db").await.unwrap_err().to_string();
        assert!(missing.contains("feature \"sqlite\""), "{missing}");
    }
}
