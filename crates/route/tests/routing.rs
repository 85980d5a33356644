//! Real nodes behind real sockets: who answers, who sends on, and what happens in between.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is test code, although not all of it is a test"
)]
#![allow(clippy::disallowed_methods, reason = "a test may wait, and has one runtime")]

mod common;

use std::time::Duration;

use common::{Site, client, fetch, hyper_forward, soon, until};
use http::StatusCode;
use incumbent::{Candidacy, MemoryStore, Node, OpenStore, family};
use incumbent_route::{HOP, KeyRouter, RouteLayer};

#[tokio::test(flavor = "multi_thread")]
async fn followers_redirect_to_the_leader_with_method_path_and_query() {
    let store: OpenStore = MemoryStore::new().into();
    let (a, b) = (Site::bind("a", &store).await, Site::bind("b", &store).await);
    let mut first = a.node.campaign("broker").unwrap();
    let leadership = soon(first.elected()).await.unwrap();
    let mut second = b.node.campaign("broker").unwrap();
    for site in [&a, &b] {
        site.serve(RouteLayer::to_leader(&site.node, "broker"));
    }
    let answer = fetch(&a, "POST", "/jobs?all=yes", "body").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::OK, "a: POST /jobs?all=yes body term 1")
    );
    until("b knows", || b.node.known_leader("broker").is_some_and(|it| it.leader.is_some())).await;
    let answer = fetch(&b, "POST", "/jobs?all=yes", "body").await;
    assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(answer.location.unwrap(), format!("{}/jobs?all=yes", a.url()));

    // In order: nobody leads, then b does, and a points there.
    soon(leadership.release()).await.unwrap();
    let answer = fetch(&a, "GET", "/", "").await;
    assert!(
        answer.text.contains("leads") || answer.status == StatusCode::TEMPORARY_REDIRECT,
        "{answer:?}"
    );
    let _leadership = soon(second.elected()).await.unwrap();
    let answer = fetch(&b, "GET", "/", "").await;
    assert_eq!(answer.text, "b: GET /  term 2");
    let to_b = |node: &Node| {
        let known = node.known_leader("broker").and_then(|known| known.leader);
        known.is_some_and(|leader| leader.node == "b")
    };
    until("a knows", || to_b(&a.node)).await;
    let answer = fetch(&a, "GET", "/x", "").await;
    assert_eq!(answer.location.unwrap(), format!("{}/x", b.url()));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_leads_clients_are_asked_to_come_again() {
    let store: OpenStore = MemoryStore::new().into();
    let site = Site::bind("a", &store).await;
    let pause = Duration::from_millis(2500);
    site.serve(RouteLayer::to_leader(&site.node, "broker").retry_after(pause));
    let answer = fetch(&site, "GET", "/", "").await;
    assert_eq!(
        (answer.status, answer.retry_after.as_deref()),
        (StatusCode::SERVICE_UNAVAILABLE, Some("3"))
    );
    assert!(answer.text.contains("stand for"), "{answer:?}");
    let _follows = site.node.campaign(Candidacy::new("broker").follow_only()).unwrap();
    until("it looked", || site.node.known_leader("broker").is_some()).await;
    let answer = fetch(&site, "GET", "/", "").await;
    assert_eq!(
        (answer.status, answer.retry_after.as_deref()),
        (StatusCode::SERVICE_UNAVAILABLE, Some("3"))
    );
    assert!(answer.text.contains("nobody leads"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forwarded_arrives_whole_and_goes_one_hop_at_most() {
    let store: OpenStore = MemoryStore::new().into();
    let (a, b) = (Site::bind("a", &store).await, Site::bind("b", &store).await);
    let mut first = a.node.campaign("broker").unwrap();
    let leadership = soon(first.elected()).await.unwrap();
    let _second = b.node.campaign(Candidacy::new("broker").follow_only()).unwrap();
    for site in [&a, &b] {
        site.serve(RouteLayer::to_leader(&site.node, "broker").forward(hyper_forward()));
    }
    until("b knows", || b.node.known_leader("broker").is_some_and(|it| it.leader.is_some())).await;
    let answer = fetch(&b, "PUT", "/jobs/1?x=y", "body").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::OK, "a: PUT /jobs/1?x=y body term 1 by b")
    );
    // One that was sent on already is not sent on again, whoever leads.
    let request = http::Request::get(format!("{}/", b.url())).header(HOP, "c");
    let answer =
        soon(client().request(request.body(axum::body::Body::empty()).unwrap())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key("retry-after"));
    // Nobody listens at the leader's address any more.
    a.close().await;
    let answer = fetch(&b, "GET", "/", "").await;
    assert_eq!((answer.status, answer.retry_after), (StatusCode::BAD_GATEWAY, None));
    drop(leadership);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_say_who_leads() {
    let store: OpenStore = MemoryStore::new().into();
    let (a, b) = (Site::bind("a", &store).await, Site::bind("b", &store).await);
    let mut first = a.node.campaign("broker").unwrap();
    let _leadership = soon(first.elected()).await.unwrap();
    let _second = b.node.campaign("broker").unwrap();
    b.serve(RouteLayer::to_leader(&b.node, "broker").refuse());
    until("b knows", || b.node.known_leader("broker").is_some_and(|it| it.leader.is_some())).await;
    let answer = fetch(&b, "GET", "/", "").await;
    assert_eq!(
        (answer.status, answer.retry_after.as_deref()),
        (StatusCode::SERVICE_UNAVAILABLE, Some("1"))
    );
    assert!(answer.text.contains("\"a\" does"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_in_a_circle_by_an_address_that_all_share() {
    let store: OpenStore = MemoryStore::new().into();
    let b = Site::bind("b", &store).await;
    // As if all told the address of a balancer, which is b at the moment.
    let address = b.url();
    let leader =
        Node::builder().cluster("test").name("a").address(address).join(&store).await.unwrap();
    let mut campaign = leader.campaign("broker").unwrap();
    let _leadership = soon(campaign.elected()).await.unwrap();
    let _second = b.node.campaign("broker").unwrap();
    b.serve(RouteLayer::to_leader(&b.node, "broker"));
    until("b knows", || b.node.known_leader("broker").is_some_and(|it| it.leader.is_some())).await;
    let answer = fetch(&b, "GET", "/", "").await;
    assert_eq!((answer.status, answer.location), (StatusCode::SERVICE_UNAVAILABLE, None));
    assert!(answer.text.contains("an address of its own"), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_usable_address_is_named_and_not_sent_to() {
    for (address, said) in [(None, "no address"), (Some("no host at all"), "is not one")] {
        let store: OpenStore = MemoryStore::new().into();
        let builder = Node::builder().cluster("test").name("a");
        let builder = address.into_iter().fold(builder, incumbent::Builder::address);
        let leader = builder.join(&store).await.unwrap();
        let mut campaign = leader.campaign("broker").unwrap();
        let _leadership = soon(campaign.elected()).await.unwrap();
        let b = Site::bind("b", &store).await;
        let _second = b.node.campaign("broker").unwrap();
        b.serve(RouteLayer::to_leader(&b.node, "broker"));
        until("b knows", || b.node.known_leader("broker").is_some_and(|it| it.leader.is_some()))
            .await;
        let answer = fetch(&b, "GET", "/", "").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(answer.text.contains("\"a\" leads") && answer.text.contains(said), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_ends_with_the_term_and_keeps_the_lease_until_then() {
    let store: OpenStore = MemoryStore::new().into();
    let site = Site::bind("a", &store).await;
    let mut campaign = site.node.campaign("broker").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    site.serve(RouteLayer::to_leader(&site.node, "broker"));
    let slow = tokio::spawn({
        let site = site.clone();
        async move { fetch(&site, "GET", "/slow", "").await }
    });
    soon(site.slow.0.notified()).await;
    // Dropped, it ends what runs under it, and the handler never comes to its end.
    drop(leadership);
    let answer = soon(slow).await.unwrap();
    assert_eq!((answer.status, &answer.retry_after), (StatusCode::SERVICE_UNAVAILABLE, &None));
    assert!(answer.text.contains("unknown"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_a_key_find_the_node_that_runs_its_duty() {
    let store: OpenStore = MemoryStore::new().into();
    let names: Vec<String> = (0..8).map(|shard| shard.to_string()).collect();
    let keys = KeyRouter::over(names.clone());
    let (a, b) = (Site::bind("a", &store).await, Site::bind("b", &store).await);
    let mut all = Vec::new();
    for site in [&a, &b] {
        let shards = family("shard").duties(names.clone());
        let run = |duty: incumbent::Duty| async move {
            duty.lost().await;
            Ok(())
        };
        site.node.serve(shards.run(run)).unwrap();
        let owners = site.node.owners("shard").unwrap();
        let key = |request: &http::request::Parts| {
            request.uri.path().strip_prefix("/keys/").map(ToOwned::to_owned)
        };
        site.serve(RouteLayer::to_owner(owners.clone(), keys.clone(), key));
        all.push(owners);
    }
    let placed = || {
        let owner = |shard: &String| {
            all.iter().map(|owners| Some(owners.owner(shard)?.owner?.node)).collect::<Vec<_>>()
        };
        names.iter().all(|shard| {
            let named = owner(shard);
            named[0].is_some() && named[0] == named[1]
        }) && names.iter().any(|shard| all[1].term(shard).is_some())
            && names.iter().any(|shard| all[0].term(shard).is_some())
    };
    until("both run some", placed).await;
    let answer = fetch(&a, "GET", "/health", "").await;
    assert_eq!(answer.status, StatusCode::OK, "without a key whoever gets it answers");
    let (mut here, mut there) = (0, 0);
    for key in 0..40 {
        let path = format!("/keys/customer-{key}");
        let answer = fetch(&a, "GET", &path, "").await;
        let owner =
            all[0].owner(keys.duty(format!("customer-{key}")).unwrap()).unwrap().owner.unwrap();
        match answer.status {
            StatusCode::OK => {
                assert!(answer.text.starts_with("a: ") && owner.node == "a", "{answer:?}");
                here += 1;
            }
            StatusCode::TEMPORARY_REDIRECT => {
                assert_eq!(answer.location.unwrap(), format!("{}{path}", b.url()));
                let answer = fetch(&b, "GET", &path, "").await;
                assert!(answer.text.starts_with("b: "), "{answer:?}");
                there += 1;
            }
            other => panic!("{other}: {answer:?}"),
        }
    }
    assert!(here > 0 && there > 0, "{here} here, {there} there");
}
