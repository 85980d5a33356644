//! Many duties on ten nodes of which one dies: until all run again, and how many moved.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::contender::{Contender, Held, Store};
use super::field::{Deadline, Entrant, Field};
use super::load::all_led;
use super::player::Task;
use super::section::{self, Section, shown};
use super::{chart::Bar, section::finite};
use crate::duties::{Fleet, Manner, Recovery};
use crate::partner::pause;
use crate::spread::Spread;

const NODES: usize = 10;

/// A peer that places no work is asked for so many leases of one process instead.
const LEASES: usize = 1000;

/// What a round of so many duties takes at the least, so that none is begun that can't end.
const ROUND: Duration = Duration::from_secs(45);

/// Of ours on PostgreSQL, and of peers what is nearest to it.
pub(super) fn measure(field: &Field, samples: usize, most: usize, until: Deadline) -> Section {
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    let ours = |it: &&Entrant| it.contender.is_ours() && it.contender.store == Store::Postgres;
    if let Some(ours) = field.entrants.iter().find(ours) {
        let who = ours.contender;
        for (duties, witness) in [(1000, true), (1000, false), (10_000, true), (10_000, false)] {
            if duties > most {
                continue;
            }
            if until.left() < ROUND {
                field.fails(&who, &format!("no time was left for {duties} duties"));
                continue;
            }
            let recoveries = match lose(field, &who, duties, witness, samples) {
                Ok(recoveries) => recoveries,
                Err(error) => {
                    field.fails(&who, &format!("{duties} duties: {error:#}"));
                    continue;
                }
            };
            let times = Spread::new(recoveries.iter().map(|it| millis(it.running)).collect());
            let closed = Spread::new(recoveries.iter().map(|it| millis(it.closed)).collect());
            let moves = recoveries.iter().map(|it| it.moves as f64 / it.duties.max(1) as f64);
            let moves = Spread::new(moves.collect());
            let proof = if witness { "its witness's" } else { "none: its ttl passes" };
            let what = format!("{duties} duties, one of {NODES} nodes");
            let moved = format!("{:.2} × what it ran", moves.quantile(1.0));
            bars.push(bar(&who, &format!("{duties} duties"), witness, &times));
            let cells = cells(&what, proof, &shown(closed.median()), moved, &times);
            rows.push((who, cells));
        }
    }
    // One process holds all, since nothing places them, and another waits for all.
    let able = |who: &Contender| !who.is_ours() && who.held == Held::Lease && who.most >= LEASES;
    if until.left() > ROUND {
        let found = field.each(able, |entrant| follow(field, entrant));
        for (who, took) in found {
            let times = Spread::new(vec![took]);
            let what = format!("{LEASES} leases, all of one process of two");
            let moved = format!("all {LEASES}");
            bars.push(bar(&who, &format!("{LEASES} leases"), false, &times));
            rows.push((who, cells(&what, "none: its ttl passes", "–", moved, &times)));
        }
    } else if field.entrants.iter().any(|entrant| able(&entrant.contender)) {
        field.fails_all("no time was left for the leases of peers");
    }
    let head = [
        "what died",
        "proof of death",
        "seen to be dead after, median",
        "all run again after, median",
        "max",
        "samples",
        "moved, at most",
    ];
    let title = "kill -9 of a process with many duties until all run again, ttl 10 s";
    section::cells("duties", &head, &rows, Some((title, bars)))
}

fn cells(what: &str, proof: &str, closed: &str, moved: String, times: &Spread) -> Vec<String> {
    let [median, most] = [0.5, 1.0].map(|share| shown(times.quantile(share)));
    let count = times.len().to_string();
    [what, proof, closed, &median, &most, &count, &moved].map(str::to_owned).to_vec()
}

fn bar(who: &Contender, what: &str, witness: bool, times: &Spread) -> Bar {
    let witness = if witness { ", witness" } else { "" };
    Bar {
        label: format!("{}, {what}{witness}", who.title),
        value: finite(times.median()),
        most: finite(times.quantile(1.0)),
        text: shown(times.median()),
        ours: who.is_ours(),
    }
}

/// Nodes of one fleet that die one after another.
fn lose(
    field: &Field,
    who: &Contender,
    duties: usize,
    witness: bool,
    samples: usize,
) -> Result<Vec<Recovery>> {
    let url = field.servers.url(who, "postgres")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let store = runtime.block_on(incumbent::open(&url))?;
    let mut fleet = Fleet::start(&url, duties, NODES, Manner { ttl: field.ttl, witness })?;
    let mut recoveries = Vec::new();
    for _ in 0..samples.min(NODES - 2) {
        fleet.await_even(duties, Duration::from_secs(4))?;
        recoveries.push(runtime.block_on(fleet.lose_one(&store, duties))?);
    }
    Ok(recoveries)
}

/// Milliseconds from the end of a process with all leases until another has them.
fn follow(field: &Field, entrant: &Entrant) -> Result<f64> {
    let url = field.servers.url(&entrant.contender, "postgres")?;
    let lease = field.name("lease");
    let (ttl, ask) = (field.ttl, Duration::ZERO);
    let task = Task { url: &url, lease: &lease, ttl, count: LEASES, ask };
    let leader = field.begin(entrant, &task)?;
    all_led(&leader, LEASES)?;
    let waiter = field.begin(entrant, &task)?;
    pause(Duration::from_secs(6));
    let _ = waiter.told();
    let killed = leader.signal(Signal::KILL)?;
    let last = all_led(&waiter, LEASES).context("after the leader's end")?;
    Ok(last.saturating_sub(killed) as f64 / 1e6)
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}
