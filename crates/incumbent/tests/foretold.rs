//! What `plan` says from outside is what the leader then does: both make it of the same records, in one place.
#![cfg(feature = "testing")]
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent::testing::World;
use incumbent::{
    Ask, Cluster, DutyCondition, DutyDescription, DutyStanding, Node, Preview, Strictness, family,
};

/// So many clusters, each asked for so many things.
const SEEDS: u64 = 12;
const ASKS: usize = 4;

const NODES: [&str; 4] = ["a", "b", "c", "d"];

/// Which node has each duty, or why none has.
type Placed = BTreeMap<String, Result<String, String>>;

#[test]
fn what_an_observer_foretells_is_what_the_leader_does() {
    let mut moved = 0;
    for seed in 0..SEEDS {
        moved += World::run(seed, |world| async move {
            let duties = draw_duties(&world);
            let mut nodes = Vec::new();
            for name in NODES {
                let zone = if world.draw(2) == 0 { "east" } else { "west" };
                let builder = Node::builder().cluster("test").name(name).label("zone", zone);
                let builder = if world.draw(3) == 0 { builder.capacity(9) } else { builder };
                let node = world.process(name).join(builder).await.unwrap();
                let work = family("work").duties(duties.clone()).run(async |duty| {
                    duty.lost().await;
                    Ok(())
                });
                node.serve(work).unwrap();
                nodes.push(node);
            }
            let cluster = nodes[0].cluster().clone();
            // Nothing moves for evenness alone, which the leader does by and by.
            tokio::time::sleep(Duration::from_secs(300)).await;
            cluster.freeze().await.unwrap();
            settled(&cluster).await;
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
        });
    }
    assert!(moved > 10, "little was foretold: {moved} moves");
}

fn draw_duties(world: &World) -> Vec<DutyDescription> {
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

fn draw_ask(world: &World, duties: &[DutyDescription]) -> Ask {
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
        DutyCondition::Paused => Err("an operator wants it so".to_owned()),
        _ => duty.node.clone().ok_or_else(String::new),
    };
    duties.iter().map(|duty| (duty.id.as_str().to_owned(), one(duty))).collect()
}

/// Waits until nothing has changed for a minute and everything runs that can.
async fn settled(cluster: &Cluster) -> Vec<DutyStanding> {
    let mut before = Vec::new();
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let now = cluster.duties().await.unwrap();
        let rests = |duty: &DutyStanding| {
            !matches!(duty.condition, DutyCondition::Assigning | DutyCondition::Revoking)
        };
        if now == before && now.iter().all(rests) {
            return now;
        }
        before = now;
    }
}
