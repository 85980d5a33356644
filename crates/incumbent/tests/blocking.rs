//! Programs without async, and without a runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use incumbent::{Attempt, Event, Finish, Node, blocking};

#[test]
fn a_program_without_async_leads_and_leaves() {
    let store = blocking::open("solo:").unwrap();
    let node = blocking::join(Node::builder().for_tests().name("a"), store).unwrap();
    let mut notices = node.subscribe();
    assert!(matches!(notices.recv().unwrap().event, Event::State(_)));
    let rounds = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&rounds);
    let lead = node
        .lead("scheduler", move |term| {
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
    assert_eq!(node.run_if_leader("scheduler", |term| term.term()), Some(1));
    assert_eq!(node.leader("scheduler").unwrap().unwrap().node, "a");
    assert_eq!(lead.stop(), Finish::Stopped);
    let other = node.try_lead("other").unwrap();
    assert!(matches!(&other, Attempt::Elected(leadership) if leadership.is_held()));
    drop(other);
    let mut campaign = node.campaign("third").unwrap();
    let leadership = campaign.elected().unwrap();
    assert_eq!(leadership.ask_store(), Ok(true));
    leadership.resign().unwrap();
    drop(campaign);
    node.leave().unwrap();
}

#[test]
fn who_waits_with_a_time_out_is_told_that_it_was_not_elected_and_is_elected_later() {
    let store = blocking::open("memory:blocking-time-outs").unwrap();
    let builder = |name: &str| Node::builder().for_tests().ttl(Duration::from_secs(6)).name(name);
    let a = blocking::join(builder("a"), store.clone()).unwrap();
    let b = blocking::join(builder("b"), store).unwrap();
    let mut first = a.campaign("scheduler").unwrap();
    let leadership = first.elected_timeout(Duration::from_secs(60)).unwrap().unwrap();
    let mut second = b.campaign("scheduler").unwrap();
    assert_eq!(second.lease().as_str(), "scheduler");
    assert!(second.elected_timeout(Duration::ZERO).unwrap().is_none());
    assert!(second.elected_timeout(Duration::from_millis(300)).unwrap().is_none());
    assert!(leadership.wait_lost_timeout(Duration::from_millis(10)).is_none());
    let (leadership, error) = leadership.transfer("nobody").unwrap_err();
    assert!(leadership.is_held() && error.to_string().contains("nobody"), "{error}");
    leadership.transfer("b").unwrap();
    let next = second.elected_timeout(Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!(next.term(), 2);
    drop(next);
    drop(second);
    drop(first);
    let members = blocking::wait(b.cluster().members()).unwrap();
    assert_eq!(members.len(), 2);
    b.leave().unwrap();
    assert!(b.campaign("scheduler").is_err(), "it has left");
}

#[test]
fn notices_and_the_end_of_work_can_be_waited_for_with_a_time_out() {
    let store = blocking::open("solo:").unwrap();
    let node = blocking::join(Node::builder().for_tests().name("a"), store).unwrap();
    let patience = Duration::from_secs(60);
    let mut notices = node.subscribe();
    assert!(matches!(notices.recv_timeout(patience).unwrap().event, Event::State(_)));
    let lead = node.lead("scheduler", |term| {
        while term.is_held() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(())
    });
    let lead = lead.unwrap();
    assert_eq!(lead.finished_timeout(Duration::from_millis(50)), None);
    while !matches!(notices.recv_timeout(patience).unwrap().event, Event::Elected { .. }) {}
    assert_eq!(lead.term().map(|term| term.lease().clone()), Some(lead.lease().clone()));
    lead.stop();
    assert_eq!(lead.finished_timeout(patience), Some(Finish::Stopped));
    assert_eq!(node.timing().ttl, Duration::from_secs(1));
    node.leave().unwrap();
    while notices.recv_timeout(patience).is_ok() {}
    assert_eq!(notices.recv_timeout(patience), Err(RecvTimeoutError::Disconnected));
    assert_eq!(node.health().standing, incumbent::Standing::Left);
}

#[test]
fn async_work_runs_without_a_runtime_of_the_program() {
    let store = blocking::open("solo:").unwrap();
    let node = blocking::join(Node::builder().for_tests().name("a"), store).unwrap();
    let lead = node
        .as_async()
        .lead("scheduler", |_| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(())
        })
        .unwrap();
    assert_eq!(pollster::block_on(lead.finished()), Finish::Completed);
    node.leave().unwrap();
}

#[test]
fn blocking_calls_work_inside_of_a_runtime_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = blocking::open("solo:").unwrap();
        let node = blocking::join(Node::builder().for_tests().name("a"), store).unwrap();
        let mut campaign = node.campaign("scheduler").unwrap();
        assert!(campaign.elected().unwrap().is_held());
        drop(campaign);
        node.leave().unwrap();
    });
}
