//! Hot paths for counting their instructions, which don't depend on what else a machine does:
//! `cargo xtask counts` runs each under callgrind and compares. Only what [`counted`] does is counted.

use std::hint::black_box;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use incumbent::blocking::Wait as _;
use incumbent_core::mutant::Planted;
use incumbent_core::records::{Content as _, MemberRecord, Profile};
use incumbent_core::store::{Exchange, Key, Lane, Record, Reply, Store as _, Version};
use incumbent_core::{Config, Elector, LeaseName, MemberId, Moment, Stance, Timing, keys, random};
use incumbent_memory::MemoryStore;
use incumbent_planner::{PlanDuty, PlanNode, Situation, plan};

const TTL: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, rounds] = arguments.as_slice() else {
        bail!("usage: incumbent-counts held|beat-1|beat-10000|plan|record ROUNDS");
    };
    let rounds = rounds.parse().context("ROUNDS")?;
    match path.as_str() {
        "held" => held(rounds),
        "beat-1" => beats(1, rounds),
        "beat-10000" => beats(10_000, rounds),
        "plan" => plans(rounds),
        "record" => records(rounds),
        _ => bail!("there is no path {path:?}"),
    }
}

/// What is in here is counted. It has a name of its own in the program, by which callgrind knows it.
#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

/// The question "do I lead?".
fn held(rounds: usize) -> Result<()> {
    let node = incumbent::Node::builder().ttl(Duration::from_secs(600));
    let node = node.join(incumbent::open("solo:").wait()?).wait()?;
    let mut campaign = node.campaign("question")?;
    let leadership = campaign.elected().wait()?;
    let term = leadership.term();
    counted(|| {
        for _ in 0..rounds {
            black_box(term.is_held());
        }
    });
    ensure!(term.is_held(), "the lease was lost, so a no was counted instead of a yes");
    drop((leadership, campaign));
    Ok(node.leave().wait()?)
}

/// Beats of a node with so many leases: from the moment in which one is due to the trust that it brings.
fn beats(leases: usize, rounds: usize) -> Result<()> {
    let config = Config {
        profile: Profile::named("counted"),
        timing: Timing::for_ttl(TTL),
        push: true,
        max_value: 1 << 20,
        membership: false,
        planted: Planted::default(),
    };
    let store = MemoryStore::new();
    let mut now = Moment::START + Duration::from_secs(100);
    let mut node = Elector::new(config, 1, now);
    for number in 0..leases {
        let name = LeaseName::new(&format!("lease-{number}"))?;
        node.campaign(now, name, Stance::default());
    }
    let ready = now + 6 * TTL;
    // Also what comes after the last election is over by then, as it is in most of a node's life.
    while now < ready {
        now = next(&node, now);
        node.poll(now);
        while let Some(request) = node.next_request() {
            let reply = exchange(&store, request.lane, request.exchange)?;
            node.handle(now, request.id, Ok(reply));
        }
        now = now + Duration::from_micros(100);
        while node.next_event().is_some() {}
    }
    ensure!(node.holdings().count() == leases, "not all leases are held");
    let mut left = rounds;
    while left > 0 {
        let due = next(&node, now);
        let trusted = node.trusted_until();
        now = due;
        let mut request = counted(|| {
            node.poll(due);
            node.next_request()
        });
        let mut beaten = false;
        while let Some(asked) = request {
            let reply = exchange(&store, asked.lane, asked.exchange)?;
            now = now + Duration::from_micros(100);
            let take_in = || {
                node.handle(now, asked.id, Ok(reply));
                node.poll(now);
                black_box(node.wake_at());
                node.next_request()
            };
            // What a node looks for in the store once in a while is no part of a beat.
            request = if asked.lane == Lane::Beat {
                beaten = true;
                counted(take_in)
            } else {
                take_in()
            };
        }
        if beaten {
            ensure!(node.trusted_until() > trusted, "a beat brought no trust");
            left -= 1;
        }
        ensure!(node.next_event().is_none(), "something else happened");
    }
    Ok(())
}

/// When it has something to do next.
fn next(node: &Elector, now: Moment) -> Moment {
    node.wake_at().max(now + Duration::from_micros(1))
}

fn exchange(store: &MemoryStore, lane: Lane, exchange: Exchange) -> Result<Reply> {
    let mut answer = store.exchange("counts", lane, exchange);
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => Ok(reply?),
        Poll::Pending => bail!("a store in memory answers at once"),
    }
}

/// A plan after one of five nodes has left with its share of a hundred duties.
fn plans(rounds: usize) -> Result<()> {
    let node = |number| PlanNode::new(format!("member-{number}"), format!("node-{number}"));
    let mut situation = Situation {
        nodes: (0..5).map(|number| node(number).running("work", ["1"])).collect(),
        ..Situation::default()
    };
    situation
        .duties
        .extend((0..100).map(|number| PlanDuty::new("work", format!("duty-{number:03}"))));
    plan(&situation).apply(&mut situation);
    situation.nodes.pop();
    let left = situation.nodes.len();
    for duty in &mut situation.duties {
        duty.running = duty.running.filter(|node| *node < left);
    }
    let moved = counted(|| (0..rounds).map(|_| plan(black_box(&situation)).moves.len()).max());
    ensure!(moved == Some(20), "{moved:?} moves instead of those of the node that left");
    Ok(())
}

/// A member's record, written and read.
fn records(rounds: usize) -> Result<()> {
    let id = MemberId::draw(&mut random::Random::new(1));
    let key: Key = keys::member(&id);
    let record = MemberRecord::joining(id, TTL, TTL / 3);
    let version = Version::new("1");
    let read = counted(|| {
        let mut read = None;
        for _ in 0..rounds {
            let (key, value) = (key.clone(), black_box(&record).bytes());
            let stored = Record { key, value, version: version.clone(), age: None };
            read = MemberRecord::read(&stored).ok();
        }
        read
    });
    ensure!(read.as_ref() == Some(&record), "what was written isn't what was read");
    Ok(())
}
