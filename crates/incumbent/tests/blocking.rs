//! Programs without async, and without a runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::{Attempt, Event, Finish, Node};

#[test]
fn a_program_without_async_leads_and_leaves() {
    let store = incumbent::open("solo:").wait().unwrap();
    let node = Node::builder().for_tests().name("a").join(store).wait().unwrap();
    let mut notices = node.subscribe();
    assert!(matches!(notices.blocking_recv().unwrap().event, Event::State(_)));
    let rounds = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&rounds);
    let lead = node
        .lead_blocking("scheduler", move |term| {
            while term.is_held() {
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::park_timeout(Duration::from_millis(5));
            }
            Ok(())
        })
        .unwrap();
    while rounds.load(Ordering::SeqCst) < 3 {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert!(lead.is_leader() && node.is_leader("scheduler"));
    assert_eq!(node.run_if_leader("scheduler", async |term| term.number()).wait(), Some(1));
    assert_eq!(node.leader("scheduler").wait().unwrap().unwrap().node, "a");
    assert_eq!(lead.stop().wait(), Finish::Stopped);
    let other = node.try_lead("other").wait().unwrap();
    assert!(matches!(&other, Attempt::Elected(leadership) if leadership.is_held()));
    drop(other);
    let mut campaign = node.campaign("third").unwrap();
    let leadership = campaign.elected().wait().unwrap();
    assert_eq!(leadership.confirm().wait(), Ok(true));
    leadership.release().wait().unwrap();
    drop(campaign);
    node.leave().wait().unwrap();
}

#[test]
fn who_waits_with_a_time_out_is_told_that_it_was_not_elected_and_is_elected_later() {
    let store = incumbent::open("memory:blocking-time-outs").wait().unwrap();
    let builder = |name: &str| Node::builder().for_tests().ttl(Duration::from_secs(6)).name(name);
    let a = builder("a").join(store.clone()).wait().unwrap();
    let b = builder("b").join(store).wait().unwrap();
    let mut first = a.campaign("scheduler").unwrap();
    let leadership = first.elected().wait_for(Duration::from_secs(60)).unwrap().unwrap();
    let mut second = b.campaign("scheduler").unwrap();
    assert_eq!(second.lease().as_str(), "scheduler");
    assert!(second.elected().wait_for(Duration::ZERO).is_none());
    assert!(second.elected().wait_for(Duration::from_millis(300)).is_none());
    assert!(leadership.lost().wait_for(Duration::from_millis(10)).is_none());
    let (leadership, error) = leadership.release_to("nobody").wait().unwrap_err();
    assert!(leadership.is_held() && error.to_string().contains("nobody"), "{error}");
    leadership.release_to("b").wait().unwrap();
    let next = second.elected().wait_for(Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!(next.number(), 2);
    drop(next);
    drop(second);
    drop(first);
    let members = b.cluster().members().wait().unwrap();
    assert_eq!(members.len(), 2);
    b.leave().wait().unwrap();
    assert!(b.campaign("scheduler").is_err(), "it has left");
}

#[test]
fn notices_and_the_end_of_work_can_be_waited_for_with_a_time_out() {
    let store = incumbent::open("solo:").wait().unwrap();
    let node = Node::builder().for_tests().name("a").join(store).wait().unwrap();
    let patience = Duration::from_secs(60);
    let mut notices = node.subscribe();
    assert!(matches!(notices.blocking_recv_timeout(patience).unwrap().event, Event::State(_)));
    let lead = node.lead_blocking("scheduler", |term| {
        while term.is_held() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(())
    });
    let lead = lead.unwrap();
    assert_eq!(lead.finished().wait_for(Duration::from_millis(50)), None);
    while !matches!(notices.blocking_recv_timeout(patience).unwrap().event, Event::Elected { .. }) {
    }
    assert_eq!(lead.term().map(|term| term.lease().clone()), Some(lead.lease().clone()));
    lead.stop().wait();
    assert_eq!(lead.finished().wait_for(patience), Some(Finish::Stopped));
    assert_eq!(node.timing().ttl, Duration::from_secs(1));
    node.leave().wait().unwrap();
    while notices.blocking_recv_timeout(patience).is_ok() {}
    assert_eq!(notices.blocking_recv_timeout(patience), Err(RecvTimeoutError::Disconnected));
    assert_eq!(node.health().standing, incumbent::Standing::Left);
}

#[test]
fn async_work_runs_without_a_runtime_of_the_program() {
    let store = incumbent::open("solo:").wait().unwrap();
    let node = Node::builder().for_tests().name("a").join(store).wait().unwrap();
    let lead = node
        .lead("scheduler", |_| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(())
        })
        .unwrap();
    assert_eq!(lead.finished().wait(), Finish::Completed);
    node.leave().wait().unwrap();
}

#[test]
fn blocking_calls_work_inside_of_a_runtime_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = incumbent::open("solo:").wait().unwrap();
        let node = Node::builder().for_tests().name("a").join(store).wait().unwrap();
        let mut campaign = node.campaign("scheduler").unwrap();
        assert!(campaign.elected().wait().unwrap().is_held());
        drop(campaign);
        node.leave().wait().unwrap();
    });
}
