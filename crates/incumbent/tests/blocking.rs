//! Programs without async, and without a runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
