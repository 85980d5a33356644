//! `incumbent-sim`: runs seeds, or one seed with its history, or every planted mistake.

mod report;

use std::process::ExitCode;

use clap::Parser;
use incumbent_sim::exhaustive::SmallCluster;
use incumbent_sim::{Plant, runs};

/// A run is made of many small pieces of memory, which this one hands out quicker.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulates whole clusters of the real core, with faults, and checks what must hold.
#[derive(Debug, Parser)]
#[command(
    name = "incumbent-sim",
    version,
    after_help = "Examples:\n  \
        incumbent-sim --seeds 100000       check many runs\n  \
        incumbent-sim --seed 4711          tell one run's history\n  \
        incumbent-sim --mutants            show that every planted mistake is caught\n  \
        incumbent-sim --exhaustive         try all ways in which two requests can go wrong\n  \
        incumbent-sim --mutant no-margin --seed 12   one planted mistake in one run"
)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0, value_name = "S")]
    first: u64,
    /// Run this seed alone and tell what happened.
    #[arg(long, value_name = "S", conflicts_with = "mutants")]
    seed: Option<u64>,
    /// Plant every mistake, each in so many seeds (--seeds, 1000 at most), and say who was caught.
    #[arg(long)]
    mutants: bool,
    /// Plant this mistake.
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Try every way in which --faults requests can go wrong in a cluster of --members.
    #[arg(long, conflicts_with_all = ["seed", "mutants"])]
    exhaustive: bool,
    /// How many requests may go wrong, for --exhaustive.
    #[arg(long, default_value_t = 2, value_name = "N")]
    faults: usize,
    /// How many members there are, for --exhaustive.
    #[arg(long, default_value_t = 2, value_name = "N")]
    members: usize,
    /// How long they are followed in milliseconds (their ttl is 3000), for --exhaustive.
    #[arg(long, default_value_t = 8_000, value_name = "MS")]
    horizon: u64,
    /// How many lines of history to tell.
    #[arg(long, default_value_t = 80, value_name = "N")]
    lines: usize,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plant = match arguments.mutant.as_deref().map(find) {
        None => Plant::Nothing,
        Some(Ok(plant)) => plant,
        Some(Err(message)) => {
            eprintln!("{message}");
            return ExitCode::from(64);
        }
    };
    let right = match (arguments.mutants, arguments.seed) {
        (true, _) => mutants(&arguments),
        (false, Some(seed)) => one(seed, plant, &arguments),
        (false, None) if arguments.exhaustive => exhaustive(plant, &arguments),
        (false, None) => many(plant, &arguments),
    };
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn find(name: &str) -> Result<Plant, String> {
    let all = Plant::all();
    all.iter().copied().find(|plant| plant.name() == name).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|plant| plant.name()).collect();
        format!("there is no mutant {name:?}; there are: {}", names.join(", "))
    })
}

fn many(plant: Plant, arguments: &Arguments) -> bool {
    let progress = |done: u64| {
        if !arguments.json && done.is_multiple_of(10_000) {
            eprintln!("{done} of {} seeds", arguments.seeds);
        }
    };
    let (total, mut failures) =
        runs::run_many(arguments.first, arguments.seeds, plant, 10, &progress);
    let scripts = runs::play_all(plant).into_iter();
    failures.extend(scripts.map(|(_, violation)| runs::Failure { seed: u64::MAX, violation }));
    let verdict = report::Verdict::of(&total, &failures, arguments.seeds);
    if arguments.json {
        println!("{}", report::many_json(&total, &failures, verdict));
    } else {
        println!("{}", report::many_text(&total, &failures, verdict));
        if let Some(failure) = failures.first() {
            let (_, lines) = runs::tell(failure.seed, plant, arguments.lines);
            println!("\nthe history of seed {}:\n{}", failure.seed, lines.join("\n"));
            println!("\nto see it again:\n  {}", report::reproduce(failure.seed, plant));
        }
    }
    verdict == report::Verdict::Passed
}

fn one(seed: u64, plant: Plant, arguments: &Arguments) -> bool {
    let (violation, lines) = runs::tell(seed, plant, arguments.lines);
    if arguments.json {
        println!("{}", report::one_json(seed, violation.as_ref(), &lines));
    } else {
        println!("{}", lines.join("\n"));
        match &violation {
            None => println!("\nseed {seed}: all invariants held"),
            Some(violation) => println!("\nseed {seed}: {}", report::violation_text(violation)),
        }
    }
    violation.is_none()
}

fn exhaustive(plant: Plant, arguments: &Arguments) -> bool {
    let mutant = match plant {
        Plant::Core(mutant) => Some(mutant),
        Plant::Nothing
        | Plant::Store(_)
        | Plant::ClockStops
        | Plant::WallClock
        | Plant::PausedIsDead => None,
    };
    let &Arguments { members, faults, horizon, .. } = arguments;
    let exploration = SmallCluster { members, faults, horizon, mutant }.explore();
    if arguments.json {
        println!("{}", report::exhaustive_json(&exploration));
    } else {
        println!("{}", report::exhaustive_text(&exploration));
    }
    exploration.violation.is_none()
}

fn mutants(arguments: &Arguments) -> bool {
    let seeds = arguments.seeds.min(1000);
    let mut rows = Vec::new();
    for plant in Plant::all() {
        let (_, failures) = runs::run_many(arguments.first, seeds, plant, seeds as usize, &|_| {});
        let row = report::MutantRow::of(plant, seeds, &failures);
        if !arguments.json {
            println!("{row}");
        }
        rows.push(row);
    }
    let escaped = rows.iter().filter(|row| row.has_escaped()).count();
    if arguments.json {
        println!("{}", report::mutants_json(&rows));
    } else {
        println!("\n{} of {} planted mistakes caught", rows.len() - escaped, rows.len());
    }
    escaped == 0
}
