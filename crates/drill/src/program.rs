//! A process of a run: its node, what it leads, and what it serves.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use incumbent::testing::{Process, World};
use incumbent::{Candidacy, DutyId, LeaderTask, LeaseName, Node, Serving, family};

use crate::book::Book;
use crate::scenario::Scenario;
use crate::work::{Belongings, Crew, Slow};

/// The clocks of a run differ by up to this much in a million: two such clocks are within what the
/// margin of a tenth allows.
const DRIFT: u64 = 20_000;

/// What runs in a process once its node has joined.
pub(crate) struct Program {
    pub(crate) node: Node,
    pub(crate) leads: Vec<LeaderTask>,
    _serving: Option<Serving>,
}

/// The leases under which work runs, those of duties included.
pub(crate) fn leases(scenario: &Scenario) -> Vec<LeaseName> {
    let leads = (0..scenario.leases).filter_map(|lease| LeaseName::new(&lead_name(lease)).ok());
    let duties = (0..scenario.duties).filter_map(|duty| DutyId::new("work", &duty_name(duty)).ok());
    leads.chain(duties.map(|duty| duty.lease())).collect()
}

pub(crate) fn lead_name(lease: usize) -> String {
    format!("lead-{lease}")
}

fn duty_name(duty: usize) -> String {
    format!("duty-{duty}")
}

/// A process as a run has them, with a clock of its own.
pub(crate) fn process(world: &World, scenario: &Scenario, number: usize) -> Process {
    let process = world.process(&format!("node-{number}"));
    let ahead = world.draw(1_000_000_000_000) as i64;
    process.set_clock(ahead, world.draw(2 * DRIFT) as i64 - DRIFT as i64);
    if scenario.blocking {
        process.allow_blocking();
    }
    process.hesitate(scenario.hesitates);
    process
}

/// Joins, and begins all that a process of the run does. Nothing if the node could not join in time.
pub(crate) async fn boot(
    world: &World,
    book: &Book,
    scenario: &Arc<Scenario>,
    process: &Process,
) -> Option<Program> {
    let crew = Crew {
        world: world.clone(),
        book: book.clone(),
        process: process.clone(),
        scenario: Arc::clone(scenario),
        failures: Arc::new(AtomicU64::new(0)),
        kept: Arc::default(),
    };
    let builder = Node::builder()
        .cluster("drill")
        .name(process.name())
        .ttl(scenario.ttl)
        .grace(scenario.grace)
        .rebalance_after(Duration::from_secs(5))
        .without_witness()
        .family_placement("work", Slow(crew.clone()))
        .join_timeout(Duration::from_secs(20));
    let node = process.join(builder).await.ok()?;
    let mut notices = process.within(|| node.subscribe());
    let (told, hears) = (book.clone(), process.clone());
    drop(process.spawn(async move {
        while let Some(notice) = notices.recv().await {
            told.heard(&hears, &notice.event);
        }
    }));
    let mut leads = Vec::new();
    for lease in 0..scenario.leases {
        let (crew, belongings) = (crew.clone(), Belongings(book.clone()));
        let candidacy = Candidacy::new(lead_name(lease));
        let lead = node.lead(candidacy, move |term| {
            let _belongings = &belongings;
            crew.clone().work(term)
        });
        leads.extend(lead.ok());
    }
    let names = (0..scenario.duties).map(duty_name);
    let serves =
        family("work").duties(names).grace(scenario.grace).run(move |duty| crew.clone().work(duty));
    let serving = if scenario.duties > 0 { node.serve(serves).ok() } else { None };
    Some(Program { node, leads, _serving: serving })
}
