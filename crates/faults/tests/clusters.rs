//! Clusters of three real servers, of which the leading one is cut off from the others while
//! candidates go on talking to all of them: never two leaders (O4).
//!
//! A stream leader of NATS that was cut off goes on answering reads for seconds, with what is no
//! longer so. One of the candidates has its reads answered by it, and everything else by the
//! majority, as a client of several servers may. It gives its lease up, withdraws and stands again,
//! while another leads.
//!
//! `INCUMBENT_TEST_FULL=1` plays five rounds instead of one, and `INCUMBENT_TEST_ROUNDS` any number.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "this is test code")]

mod apart;

use std::time::Duration;

use apart::contender::{Contender, Torn};
use apart::net::Net;
use apart::servers::{Kind, Servers};
use incumbent::blocking::Wait;
use incumbent::clock;
use incumbent_proving::{History, Order};

#[test]
fn never_two_leaders_on_a_parted_cluster_of_three_nats_servers() {
    apart::run_apart("nats");
}

#[test]
fn never_two_leaders_on_a_parted_cluster_of_three_etcd_servers() {
    apart::run_apart("etcd");
}

#[test]
#[ignore = "the other tests run it as another process"]
fn child_process() {
    // The ttl outlasts the election of a new leader among the servers, so that a candidate that
    // reads stale records is still a member.
    match apart::role().as_str() {
        "nats" => play(Kind::Nats, Duration::from_secs(20)),
        "etcd" => play(Kind::Etcd, Duration::from_secs(6)),
        other => panic!("no role {other}"),
    }
}

fn play(kind: Kind, ttl: Duration) {
    let net = Net::new();
    let servers = Servers::start(kind, &net);
    let mut histories = Vec::new();
    let rounds = rounds();
    for round in 0..rounds {
        servers.wait();
        histories.extend(part(&net, &servers, ttl, round));
    }
    let account = incumbent_proving::check(&histories).unwrap_or_else(|violation| {
        panic!("{violation}");
    });
    println!("{kind:?}, {rounds} rounds: {account:?}");
    assert!(account.terms as u64 > 2 * rounds, "hardly anybody was elected: {account:?}");
    assert!(account.yes > 1000, "hardly anything was asked: {account:?}");
}

/// Parts the servers once, and joins them again.
fn part(net: &Net, servers: &Servers, ttl: Duration, round: u64) -> Vec<History> {
    const BUCKET: &str = "parted";
    let open = |machines: &[usize]| incumbent::open(&servers.url(machines, BUCKET)).wait().unwrap();
    drop(open(&[0, 1, 2]));
    let stale = servers.leader(BUCKET);
    let fresh = [(stale + 1) % 3, (stale + 2) % 3];
    let torn = Torn { reads: open(&[stale]), rest: open(&fresh) };
    let torn = Contender::start(&format!("torn-{round}"), ttl, torn);
    torn.elected();
    let whole = Contender::start(&format!("whole-{round}"), ttl, open(&fresh));
    let lost = Contender::start(&format!("lost-{round}"), ttl, open(&[stale]));
    // All have seen who leads.
    std::thread::park_timeout(Duration::from_secs(2));
    net.cut_off(stale);
    let since = clock::now();
    while !fresh.iter().any(|machine| servers.leads(*machine, BUCKET)) {
        assert!(clock::now().since(since) < ttl, "the majority elected nobody within {ttl:?}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
    println!("a new server leads after {:?}", clock::now().since(since));
    torn.tell(Order::Return);
    let term = whole.elected();
    println!("term {term} began {:?} after the cut", clock::now().since(since));
    // As long as the one that was cut off answers, it says that the lease is still the first's.
    std::thread::park_timeout(Duration::from_secs(8));
    assert!(whole.is_leader(), "it lost the lease while it could reach the majority");
    net.heal(stale);
    whole.tell(Order::Resign);
    let everybody = [torn, whole, lost];
    let healed = clock::now();
    while !everybody.iter().any(|one| one.news().is_some_and(|later| later > term)) {
        assert!(clock::now().since(healed) < 4 * ttl, "nobody is elected on the healed cluster");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    everybody.map(Contender::stop).into()
}

fn rounds() -> u64 {
    if let Some(rounds) = std::env::var("INCUMBENT_TEST_ROUNDS").ok().and_then(|it| it.parse().ok())
    {
        return rounds;
    }
    if std::env::var("INCUMBENT_TEST_FULL").is_ok() { 5 } else { 1 }
}
