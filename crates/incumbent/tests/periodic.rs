//! Jobs that run once per tick in the whole cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code, all of it")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::timeline::{MINUTE, Runs, Wall, minute, time};
use common::{join, memory, pause, soon, steady, until};
use incumbent::store::{Exchange, Found, Lane, Read};
use incumbent::{CatchUp, Finish, LeaderTask, LeaseName, Node, OpenStore, Schedule};

/// A job whose runs are written down and always succeed.
fn job(node: &Node, schedule: Schedule, runs: &Runs) -> LeaderTask {
    let (runs, name) = (runs.clone(), node.name().to_owned());
    node.periodic("job", schedule, move |run| {
        let (runs, name) = (runs.clone(), name.clone());
        async move {
            let _entered = runs.enter(&name, &run);
            assert!(run.is_held());
            Ok(())
        }
    })
    .unwrap()
}

async fn done(store: &OpenStore) -> Option<u64> {
    let cluster = incumbent::Cluster::new(store, "test").unwrap();
    let last = cluster.last_success("job").await.unwrap();
    last.and_then(|last| last.scheduled).map(minute)
}

/// Whether a leader has claimed the job, so that time counts from then on.
async fn is_known(store: &OpenStore) -> bool {
    let key = incumbent::keys::once(&LeaseName::new("job").unwrap());
    let reads = vec![Read::Key { key, unless: None }];
    let exchange = Exchange { writes: Vec::new(), reads };
    let reply = store.exchange("test", Lane::Watch, exchange).await.unwrap();
    matches!(reply.reads.first(), Some(Found::Record(_)))
}

async fn known(store: &OpenStore) {
    soon(async {
        while !is_known(store).await {
            pause(5).await;
        }
    })
    .await;
}

async fn until_done(store: &OpenStore, wanted: u64) {
    soon(async {
        while done(store).await != Some(wanted) {
            pause(5).await;
        }
    })
    .await;
}

#[tokio::test]
async fn of_two_nodes_one_runs_each_tick_once() {
    let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
    let (a, b) = (join(&store, "a").await, join(&store, "b").await);
    let leads = [job(&a, wall.minutely(), &runs), job(&b, wall.minutely(), &runs)];
    known(&store).await;
    // What was due before the job was known is none of its business. Only who has claimed it can
    // know that, and the claim is recorded.
    let cluster = a.cluster().clone();
    assert_eq!(cluster.last_success("job").await.unwrap(), None);
    pause(300).await;
    assert_eq!(runs.minutes(), [0; 0]);
    for minute in 1..=3 {
        wall.set(minute);
        until_done(&store, minute).await;
    }
    pause(1200).await;
    assert_eq!(runs.minutes(), [1, 2, 3]);
    runs.check();
    let last = cluster.last_success("job").await.unwrap().unwrap();
    assert_eq!(last.scheduled, Some(time(3)));
    assert_eq!(last.node, runs.all().last().unwrap().node);
    assert_eq!(last.term, runs.all().last().unwrap().fence);
    for lead in &leads {
        assert_eq!(soon(lead.stop()).await, Finish::Stopped);
    }
}

/// Nodes take turns while time goes on; each run says that it is complete.
async fn take_turns(stores: [OpenStore; 2]) {
    let (wall, runs) = (Wall::at(0), Runs::default());
    let each = CatchUp::Each { most: 10_000 };
    let mut nodes = Vec::new();
    for (number, store) in stores.iter().enumerate() {
        let node = steady(&format!("node-{number}")).join(store).await.unwrap();
        let (runs, name) = (runs.clone(), node.name().to_owned());
        let lead = node
            .periodic("job", wall.minutely().catch_up(each), move |run| {
                let (runs, name) = (runs.clone(), name.clone());
                async move {
                    let _entered = runs.enter(&name, &run);
                    pause(10).await;
                    run.complete();
                    Ok(())
                }
            })
            .unwrap();
        nodes.push((node, lead));
    }
    let store = &stores[0];
    known(store).await;
    wall.set(1);
    until_done(store, 1).await;
    let (mut turns, mut now) = (0, 1);
    while turns < 6 {
        now += 5;
        wall.set(now);
        until("half of it", || runs.minutes().len() as u64 >= now - 2).await;
        if let Some(term) = nodes.iter().find_map(|(_, lead)| lead.term()) {
            // In the middle of a run or between two, as it comes.
            term.resign();
            turns += 1;
        }
    }
    until_done(store, now).await;
    runs.check();
    let expected: Vec<u64> = (1..=now).collect();
    assert_eq!(runs.minutes(), expected, "each once, in order, none lost");
    let hands = runs.all().windows(2).filter(|pair| pair[0].node != pair[1].node).count();
    assert!(hands > 2, "it changed hands {hands} times");
}

#[tokio::test]
async fn no_tick_is_lost_or_run_twice_over_a_hand_over() {
    let store = memory();
    take_turns([store.clone(), store]).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn no_tick_is_lost_or_run_twice_over_a_hand_over_on_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let stores = [incumbent::open(&url).await.unwrap(), incumbent::open(&url).await.unwrap()];
    take_turns(stores).await;
}

#[tokio::test]
async fn no_tick_is_lost_when_leaders_are_thrown_out() {
    let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
    let schedule = wall.minutely().catch_up(CatchUp::Each { most: 10_000 });
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        let node = join(&store, name).await;
        let lead = job(&node, schedule.clone(), &runs);
        nodes.push((node, lead));
    }
    known(&store).await;
    let cluster = nodes[0].0.cluster().clone();
    for round in 1..=5 {
        wall.set(round * 10);
        until("some of it", || runs.minutes().last().is_some_and(|last| *last > round * 10 - 8))
            .await;
        if let Some(leader) = soon(cluster.leader("job")).await.unwrap() {
            let _ = cluster.evict(leader.member.as_str()).await;
        }
    }
    until_done(&store, 50).await;
    let counts = runs.counts();
    let expected: Vec<u64> = (1..=50).collect();
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), expected, "none is lost");
    // Only the run whose success could not be recorded any more comes again.
    assert!(counts.values().filter(|count| **count > 1).count() <= 5, "{counts:?}");
    runs.check();
}

#[tokio::test]
async fn what_was_missed_is_made_up_for_as_the_policy_says() {
    let skip = |after| CatchUp::Skip { after };
    let cases: [(CatchUp, &[u64]); 4] = [
        (CatchUp::Latest, &[10, 11]),
        (CatchUp::Each { most: 3 }, &[8, 9, 10, 11]),
        (skip(MINUTE / 4), &[11]),
        (skip(MINUTE), &[10, 11]),
    ];
    for (catch_up, expected) in cases {
        let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
        let first = join(&store, "first").await;
        let _lead = job(&first, wall.minutely(), &Runs::default());
        known(&store).await;
        wall.set(1);
        until_done(&store, 1).await;
        soon(first.leave()).await.unwrap();

        wall.set(10);
        let second = join(&store, "second").await;
        let _lead = job(&second, wall.minutely().catch_up(catch_up), &runs);
        if expected.contains(&10) {
            until_done(&store, 10).await;
        } else {
            until("it leads", || second.is_leader("job")).await;
            pause(300).await;
        }
        // The beginning of the next minute: in time for any of them.
        wall.advance(MINUTE / 2);
        until_done(&store, 11).await;
        assert_eq!(runs.minutes(), expected, "{catch_up:?}");
        assert_eq!(runs.all()[0].since, 1, "it knows from when on it makes up");
        runs.check();
    }
}

#[tokio::test]
async fn a_run_that_fails_is_not_done_and_comes_again() {
    for how in ["error", "panic"] {
        let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
        let node = join(&store, "a").await;
        let written = runs.clone();
        let _lead = node
            .periodic("job", wall.minutely(), move |run| {
                let entered = written.enter("a", &run);
                let times = written.minutes().len();
                async move {
                    let _entered = entered;
                    assert!(how != "panic" || times > 3, "as planned");
                    if times > 3 { Ok(()) } else { Err("no paper".into()) }
                }
            })
            .unwrap();
        known(&store).await;
        wall.set(1);
        until("it failed", || !runs.minutes().is_empty()).await;
        until_done(&store, 1).await;
        assert_eq!(runs.minutes(), [1; 4], "{how}: the same tick until it is done");
        runs.check();
    }
}

#[tokio::test]
async fn what_fails_on_one_node_is_done_by_another() {
    let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
    let (sick, healthy) = (join(&store, "sick").await, join(&store, "healthy").await);
    let failures = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&failures);
    // It stands back for long, so that the other is sure to come next.
    let schedule = wall.minutely().retry_pauses(MINUTE, MINUTE);
    let _lead = sick
        .periodic("job", schedule, move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Err("no licence".into()) }
        })
        .unwrap();
    known(&store).await;
    let _lead = job(&healthy, wall.minutely(), &runs);
    wall.set(1);
    until_done(&store, 1).await;
    assert_eq!((runs.minutes(), failures.load(Ordering::SeqCst)), (vec![1], 1));
}

#[tokio::test]
async fn a_clock_that_is_behind_runs_nothing_again_and_loses_nothing() {
    let (store, runs) = (memory(), Runs::default());
    let ahead = Wall::at(0);
    let first = join(&store, "ahead").await;
    let _lead = job(&first, ahead.minutely(), &runs);
    known(&store).await;
    ahead.set(2);
    until_done(&store, 2).await;
    soon(first.leave()).await.unwrap();

    // By its clock the second tick isn't due yet.
    let behind = Wall::at(1);
    let second = join(&store, "behind").await;
    let each = behind.minutely().catch_up(CatchUp::Each { most: 100 });
    let _lead = job(&second, each, &runs);
    until("it leads", || second.is_leader("job")).await;
    behind.set(2);
    pause(1200).await;
    assert_eq!(runs.minutes(), [2], "it is recorded as done");
    behind.set(4);
    until_done(&store, 4).await;
    assert_eq!(runs.minutes(), [2, 3, 4]);
}

#[tokio::test]
async fn a_tick_of_the_far_future_is_not_the_end() {
    let (store, runs) = (memory(), Runs::default());
    let year = 366 * 24 * 60;
    let wrong = Wall::at(year);
    let first = join(&store, "wrong").await;
    let _lead = job(&first, wrong.minutely(), &runs);
    known(&store).await;
    wrong.set(year + 1);
    until_done(&store, year + 1).await;
    soon(first.leave()).await.unwrap();

    let right = Wall::at(5);
    let second = join(&store, "right").await;
    let _lead = job(&second, right.minutely(), &runs);
    until("it leads", || second.is_leader("job")).await;
    right.set(6);
    pause(300).await;
    assert_eq!(runs.minutes(), [year + 1]);
    second.cluster().forget_last_success("job").await.unwrap();
    // From now on, and not before it has looked.
    soon(async {
        for minute in 7.. {
            right.set(minute);
            pause(1500).await;
            if done(&store).await == Some(minute) {
                return;
            }
        }
    })
    .await;
    runs.check();
}

#[tokio::test]
async fn work_that_stops_when_it_is_told_to_is_not_done() {
    let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
    let node = join(&store, "a").await;
    let told = Arc::new(AtomicBool::new(false));
    let (written, tell) = (runs.clone(), Arc::clone(&told));
    let lead = node
        .periodic("job", wall.minutely(), move |run| {
            let entered = written.enter("a", &run);
            let tell = Arc::clone(&tell);
            async move {
                let _entered = entered;
                if !tell.swap(true, Ordering::SeqCst) {
                    run.token().cancelled().await;
                }
                Ok(())
            }
        })
        .unwrap();
    known(&store).await;
    wall.set(1);
    until("it runs", || told.load(Ordering::SeqCst)).await;
    lead.term().unwrap().resign();
    until_done(&store, 1).await;
    assert_eq!(runs.minutes(), [1, 1], "the first stopped in the middle, for all that is known");
    runs.check();
}

#[tokio::test]
async fn what_a_run_started_has_ended_before_it_is_done() {
    let (store, wall) = (memory(), Wall::at(0));
    let node = join(&store, "a").await;
    let ended = Arc::new(AtomicBool::new(false));
    struct Ends(Arc<AtomicBool>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let end = Arc::clone(&ended);
    let _lead = node
        .periodic("job", wall.minutely(), move |run| {
            let ends = Ends(Arc::clone(&end));
            async move {
                drop(common::spawn(run.guard(async move {
                    let _ends = ends;
                    std::future::pending::<()>().await;
                })));
                Ok(())
            }
        })
        .unwrap();
    known(&store).await;
    wall.set(1);
    until_done(&store, 1).await;
    assert!(ended.load(Ordering::SeqCst));
    assert!(node.is_leader("job"), "the lease is kept for the next tick");
}

#[test]
fn a_program_without_async_has_it_too() {
    use incumbent::blocking::Wait;
    let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
    let node = common::builder("a").join(&store).wait().unwrap();
    let written = runs.clone();
    let job = node
        .periodic_blocking("job", wall.minutely(), move |run| {
            let _entered = written.enter("a", &run);
            Ok(())
        })
        .unwrap();
    let cluster = node.cluster();
    let wait = |what: &str, condition: &dyn Fn() -> bool| {
        let deadline = incumbent::clock::now() + Duration::from_secs(60);
        while !condition() {
            assert!(incumbent::clock::now() < deadline, "{what}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    };
    pollster::block_on(async { while !is_known(&store).await {} });
    for minute in 1..=2 {
        wall.set(minute);
        let scheduled = Some(time(minute));
        wait("it is done", &|| {
            let last = cluster.last_success("job").wait().unwrap();
            last.and_then(|last| last.scheduled) == scheduled
        });
    }
    assert_eq!(runs.minutes(), [1, 2]);
    assert_eq!(job.stop().wait(), Finish::Stopped);
    node.leave().wait().unwrap();
}

#[test]
fn it_needs_no_timers_of_the_application() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (store, wall, runs) = (memory(), Wall::at(0), Runs::default());
    runtime.block_on(async {
        let node = common::builder("a").join(&store).await.unwrap();
        let lead = job(&node, wall.minutely(), &runs);
        while !is_known(&store).await {
            tokio::task::yield_now().await;
        }
        wall.set(1);
        while done(&store).await != Some(1) {}
        assert_eq!(lead.stop().await, Finish::Stopped);
        node.leave().await.unwrap();
    });
}

#[cfg(feature = "cron")]
#[tokio::test]
async fn cron_expressions_tick_and_end() {
    let (store, runs) = (memory(), Runs::default());
    let node = join(&store, "a").await;
    // One that ends when this test has long been forgotten.
    let schedule = Schedule::cron("0 * * * * * 2090").unwrap();
    let last = time(0).checked_add(Duration::from_secs(2_118_447_960)).unwrap();
    assert_eq!(schedule.next_after(last), None, "there is no more in 2091");
    let wall = move || last;
    let lead = job(&node, schedule.wall_clock(wall), &runs);
    assert_eq!(soon(lead.finished()).await, Finish::Completed);
    assert!(runs.minutes().is_empty());
}
