//! What `plan` says from outside is what the leader then does: both make it of the same records, in one place.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this is test code, although not all of it is a test"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use incumbent::{
    Ask, Cluster, DutyCondition, DutyDescription, DutyStanding, MemoryStore, Node, Preview,
    Strictness, family,
};
use incumbent_core::random::Random;

/// So many clusters, each asked for so many things.
const SEEDS: u64 = 8;
const ASKS: usize = 4;

/// Long enough for a machine that is busy.
const TTL: Duration = Duration::from_secs(12);

const NODES: [&str; 4] = ["a", "b", "c", "d"];

/// Which node has each duty, or why none has.
type Placed = BTreeMap<String, Result<String, String>>;

/// What is drawn from a seed.
struct Draws(RefCell<Random>);

impl Draws {
    fn draw(&self, below: u64) -> u64 {
        self.0.borrow_mut().below(below)
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_an_observer_foretells_is_what_the_leader_does() {
    let local = tokio::task::LocalSet::new();
    let clusters: Vec<_> = (0..SEEDS).map(|seed| local.spawn_local(foretell(seed))).collect();
    local.await;
    let mut moved = 0;
    for cluster in clusters {
        moved += cluster.await.unwrap();
    }
    assert!(moved > 5, "little was foretold: {moved} moves");
}

/// Asks a cluster for this and that, and says how many moves were foretold.
async fn foretell(seed: u64) -> usize {
    let world = Draws(RefCell::new(Random::new(seed)));
    let (store, duties) = (MemoryStore::new(), draw_duties(&world));
    let mut nodes = Vec::new();
    for name in NODES {
        let zone = if world.draw(2) == 0 { "east" } else { "west" };
        let builder = Node::builder().for_tests().ttl(TTL).name(name).label("zone", zone);
        let builder = if world.draw(3) == 0 { builder.capacity(9) } else { builder };
        let node = builder.join(store.clone()).await.unwrap();
        let work = family("work").duties(duties.clone()).run(|duty| async move {
            duty.lost().await;
            Ok(())
        });
        node.serve(work).unwrap();
        nodes.push(node);
    }
    let cluster = nodes[0].cluster().clone();
    // Nothing moves for evenness alone, which the leader does by and by.
    cluster.freeze().await.unwrap();
    let mut moved = 0;
    for _ in 0..ASKS {
        let before = placed(&settled(&cluster).await);
        let ask = draw_ask(&world, &duties);
        let foretold = cluster.plan_if(vec![ask.clone()], |_| false).await.unwrap();
        moved += foretold.moves.len();
        let expected = after(before, &foretold);
        do_ask(&cluster, &ask).await;
        let found = placed(&settled(&cluster).await);
        assert_eq!(found, expected, "seed {seed}: {ask:?} foretold {foretold:?}");
    }
    moved
}

fn draw_duties(world: &Draws) -> Vec<DutyDescription> {
    let count = 5 + world.draw(6);
    let one = |number: u64| {
        let duty = DutyDescription::named(format!("d{number}")).weight(1 + world.draw(3));
        match world.draw(5) {
            0 => duty.selector("zone", "east"),
            1 => duty.prefer_node(NODES[world.draw(4) as usize]),
            _ => duty,
        }
    };
    (0..count).map(one).collect()
}

fn draw_ask(world: &Draws, duties: &[DutyDescription]) -> Ask {
    let duty = format!("work/d{}", world.draw(duties.len() as u64));
    let node = NODES[world.draw(4) as usize].to_owned();
    match world.draw(6) {
        0 => Ask::Pin { duty, node, required: true },
        1 => Ask::Pin { duty, node, required: false },
        2 => Ask::Pause { duty },
        3 => Ask::Move { duty, node },
        4 => Ask::Cordon { node },
        _ => Ask::Drain { node },
    }
}

async fn do_ask(cluster: &Cluster, ask: &Ask) {
    let asked = match ask {
        Ask::Pin { duty, node, required } => {
            let strictness = if *required { Strictness::Required } else { Strictness::Preferred };
            cluster.pin(duty, node, strictness).await
        }
        Ask::Pause { duty } => cluster.pause(duty).await,
        Ask::Move { duty, node } => cluster.move_duty(duty, node).await,
        Ask::Cordon { node } => cluster.cordon(node).await,
        Ask::Drain { node } => cluster.drain(node).await,
        other => panic!("{other:?} isn't drawn"),
    };
    assert!(asked.unwrap().unknown.is_empty());
}

/// What the preview makes of where everything is.
fn after(mut placed: Placed, foretold: &Preview) -> Placed {
    for step in &foretold.moves {
        let to = step.to.clone().ok_or_else(String::new);
        placed.insert(step.duty.as_str().to_owned(), to);
    }
    for (duty, reason) in &foretold.unplaced {
        placed.insert(duty.as_str().to_owned(), Err(reason.clone()));
    }
    placed
}

fn placed(duties: &[DutyStanding]) -> Placed {
    let one = |duty: &DutyStanding| match &duty.condition {
        DutyCondition::Unassigned(reason) => Err(reason.clone()),
        DutyCondition::Paused => Err("it is paused".to_owned()),
        _ => duty.node.clone().ok_or_else(String::new),
    };
    duties.iter().map(|duty| (duty.id.as_str().to_owned(), one(duty))).collect()
}

/// Waits until nothing has changed for a while and everything runs that can.
async fn settled(cluster: &Cluster) -> Vec<DutyStanding> {
    let (mut before, mut same) = (Vec::new(), 0);
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = cluster.duties().await.unwrap();
        let rests = |duty: &DutyStanding| {
            !matches!(duty.condition, DutyCondition::Assigning | DutyCondition::Revoking)
        };
        let rested = !now.is_empty() && now == before && now.iter().all(rests);
        same = if rested { same + 1 } else { 0 };
        if same == 8 {
            return now;
        }
        before = now;
    }
}
