//! The library in virtual time: what `incumbent::testing` promises.
#![cfg(feature = "testing")]
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use incumbent::testing::{Holding, Thread, World, block};
use incumbent::{Node, family};

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

#[test]
fn o43_work_from_before_a_panic_of_the_driver_is_waited_for() {
    World::run(2, |world| async move {
        let process = world.process("a");
        let node = process.join(builder("a")).await.unwrap();
        let running = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&running);
        let duty = family("work").duties(["one"]).run(move |duty| {
            let running = Arc::clone(&counted);
            async move {
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "one run at a time");
                let _running = Running(running);
                duty.lost().await;
                Ok(())
            }
        });
        let _serving = node.serve(duty).unwrap();
        world.until(|| running.load(Ordering::SeqCst) == 1).await;
        let former = world.holdings();
        process.stall(Thread::Work, Duration::from_secs(60));
        process.break_driver();
        tokio::time::sleep(Duration::from_secs(55)).await;
        assert_eq!(running.load(Ordering::SeqCst), 1, "its values are still there");
        let held = |holding: &&Holding| holding.held && holding.lease == former[0].lease;
        assert_eq!(world.holdings().iter().filter(held).count(), 0, "and keep the node from it");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(world.holdings().iter().filter(held).count(), 1, "it runs again");
        assert_eq!(running.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn o45_who_leaves_after_a_panic_of_the_driver_waits_for_the_work_from_before() {
    for (stalled, in_order) in [(3, true), (60, false)] {
        World::run(5, move |world| async move {
            let process = world.process("a");
            let node = process.join(builder("a").grace(Duration::from_secs(10))).await.unwrap();
            let running = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&running);
            let lead = node.lead("scheduler", move |term| {
                counted.fetch_add(1, Ordering::SeqCst);
                let running = Running(Arc::clone(&counted));
                async move {
                    term.lost().await;
                    drop(running);
                    Ok(())
                }
            });
            let lead = lead.unwrap();
            world.until(|| lead.is_leader()).await;
            process.stall(Thread::Work, Duration::from_secs(stalled));
            process.break_driver();
            let left = node.leave().await;
            let works = running.load(Ordering::SeqCst) == 1;
            assert_eq!((left.is_ok(), works), (in_order, !in_order), "{left:?}");
        });
    }
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_lease_that_is_lost_now_is_won_again() {
    World::run(3, |world| async move {
        let process = world.process("a");
        let node = process.join(builder("a")).await.unwrap();
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&starts);
        let lead = node.lead("scheduler", move |term| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                term.lost().await;
                Ok(())
            }
        });
        let lead = lead.unwrap();
        world.until(|| lead.is_leader()).await;
        let term = lead.term().unwrap();
        assert!(process.lose("scheduler") && !process.lose("unknown"));
        assert!(!term.is_held(), "at this very instant");
        world.until(|| lead.is_leader()).await;
        assert!(lead.term().unwrap().number() > term.number());
        assert_eq!(starts.load(Ordering::SeqCst), 2);
        node.leave().await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        for thread in [Thread::Beats, Thread::Runners, Thread::Work] {
            assert_eq!(process.tasks(thread), 0, "{thread:?}");
        }
    });
}

#[test]
fn blocking_work_takes_its_time_in_the_world() {
    World::run(4, |world| async move {
        let process = world.process("a");
        let node = process.join(builder("a")).await.unwrap();
        let lead = node.lead_blocking("scheduler", |term| {
            while term.is_held() {
                block(Duration::from_secs(1));
            }
            Ok(())
        });
        let lead = lead.unwrap();
        world.until(|| lead.is_leader()).await;
        let before = world.elapsed();
        lead.stop().await;
        let took = world.elapsed() - before;
        assert!(took <= Duration::from_millis(1_100), "{took:?}");
        node.leave().await.unwrap();
    });
}

#[test]
fn o62_who_has_a_slot_leaves_no_timer_behind() {
    World::run(8, |world| async move {
        let process = world.process("a");
        let node = process.join(builder("a")).await.unwrap();
        let slots = node.slots("importers", 2).unwrap();
        let mut before = None;
        for _ in 0..20 {
            let taken = process.run(slots.acquire_within(Duration::from_secs(3600)));
            taken.await.unwrap().unwrap().release().await.unwrap();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let tasks = process.tasks(Thread::Runners);
            assert!(tasks <= *before.get_or_insert(tasks), "{tasks} tasks");
        }
    });
}

#[test]
fn o62_what_a_node_computes_and_prepares_ends_with_it() {
    World::run(9, |world| async move {
        let process = world.process("a");
        let node = process.join(builder("a").grace(Duration::from_secs(1))).await.unwrap();
        let list = || async { Ok(vec![incumbent::DutyDescription::named("one")]) };
        let work = family("work").duties_with(list).refresh(Duration::from_secs(3600));
        let running = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&running);
        let work = work.run(move |duty| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                duty.lost().await;
                Ok(())
            }
        });
        let serving = node.serve(work).unwrap();
        world.until(|| running.load(Ordering::SeqCst) == 1).await;
        node.leave().await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        for thread in [Thread::Beats, Thread::Runners, Thread::Work] {
            assert_eq!(process.tasks(thread), 0, "{thread:?}");
        }
        drop(serving);
    });
}

#[test]
fn o62_a_watchdog_without_patience_stops_nothing_else() {
    World::run(10, |world| async move {
        let process = world.process("a");
        let node = process.join(builder("a")).await.unwrap();
        let starting = family("work").duties(["one"]).waits_for_ready();
        let started = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&started);
        let starting = starting.watchdog(Duration::ZERO).run(move |duty| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                duty.lost().await;
                Ok(())
            }
        });
        let _serving = node.serve(starting).unwrap();
        world.until(|| started.load(Ordering::SeqCst) == 1).await;
        let lead = node.lead("scheduler", |term| async move {
            term.lost().await;
            Ok(())
        });
        let lead = lead.unwrap();
        world.until(|| lead.is_leader()).await;
        lead.stop().await;
    });
}

/// As docs/testing.md has it.
#[test]
fn the_work_stops_when_the_store_is_gone() {
    World::run(7, |world| async move {
        let process = world.process("billing-1");
        let node =
            process.join(Node::builder().cluster("billing").name("billing-1")).await.unwrap();
        let lead = node.lead("scheduler", |term| async move {
            term.lost().await;
            Ok(())
        });
        let lead = lead.unwrap();
        world.until(|| lead.is_leader()).await;

        process.cut_store();
        tokio::time::sleep(Duration::from_secs(15)).await; // takes no time
        assert!(!lead.is_leader());
    });
}
