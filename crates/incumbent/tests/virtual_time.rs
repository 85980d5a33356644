//! The library in virtual time: what `incumbent::testing` promises.
#![cfg(feature = "testing")]
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use incumbent::Node;
use incumbent::testing::World;

fn builder(name: &str) -> incumbent::Builder {
    Node::builder().cluster("test").name(name)
}

#[test]
fn a_node_that_is_cut_off_stops_before_another_begins() {
    World::run(1, |world| async move {
        let steps = Arc::new(AtomicUsize::new(0));
        let processes: Vec<_> = ["a", "b", "c"].map(|name| world.process(name)).into();
        let mut leads = Vec::new();
        let mut nodes = Vec::new();
        for process in &processes {
            let node = process.join(builder(process.name())).await.unwrap();
            let steps = Arc::clone(&steps);
            let lead = node.lead("scheduler", move |_| {
                let steps = Arc::clone(&steps);
                async move {
                    loop {
                        steps.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            });
            leads.push(lead.unwrap());
            nodes.push(node);
        }
        world.until(|| leads.iter().any(|lead| lead.is_leader())).await;
        let first = leads.iter().position(|lead| lead.is_leader()).unwrap();
        processes[first].cut_store();
        world.until(|| !leads[first].is_leader()).await;
        assert!(world.elapsed() < Duration::from_secs(16), "trust ends by its own clock");
        let before = steps.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(steps.load(Ordering::SeqCst), before, "nobody works in between");
        world.until(|| leads.iter().any(|lead| lead.is_leader())).await;
        assert!(world.elapsed() < Duration::from_secs(25));
        assert_eq!(world.holdings().iter().filter(|holding| holding.held).count(), 1);
    });
}
