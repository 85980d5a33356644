//! `incumbent-drill`: plays seeds, or one seed with its history, or every planted mistake.

use std::process::ExitCode;

use clap::Parser;
use incumbent::DriverMutant;
use incumbent_drill::{caught_by, runs};

/// Runs whole nodes, real drivers and runners, in virtual time, and checks what must hold.
#[derive(Debug, Parser)]
#[command(
    name = "incumbent-drill",
    version,
    after_help = "Examples:\n  \
        incumbent-drill --seeds 10000      check many runs\n  \
        incumbent-drill --seed 4711        tell one run's history\n  \
        incumbent-drill --mutants          show that every planted mistake is caught\n  \
        incumbent-drill --mutant guard-skips-trust --seed 12   one planted mistake in one run"
)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 2_000, value_name = "N")]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0, value_name = "S")]
    first: u64,
    /// Run this seed alone and tell what happened.
    #[arg(long, value_name = "S", conflicts_with = "mutants")]
    seed: Option<u64>,
    /// Plant every mistake, each in up to so many seeds, and say who was caught.
    #[arg(long)]
    mutants: bool,
    /// Plant this mistake.
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// How many lines of history to tell.
    #[arg(long, default_value_t = 80, value_name = "N")]
    lines: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mutant = match arguments.mutant.as_deref().map(find) {
        None => None,
        Some(Ok(mutant)) => Some(mutant),
        Some(Err(message)) => {
            eprintln!("{message}");
            return ExitCode::from(64);
        }
    };
    let right = match arguments.seed {
        Some(seed) => one(seed, mutant, arguments.lines),
        None if arguments.mutants => mutants(&arguments),
        None => many(mutant, &arguments),
    };
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn find(name: &str) -> Result<DriverMutant, String> {
    DriverMutant::ALL.iter().copied().find(|mutant| mutant.name() == name).ok_or_else(|| {
        let names: Vec<String> = DriverMutant::ALL.iter().map(|mutant| mutant.name()).collect();
        format!("there is no mutant {name:?}; there are: {}", names.join(", "))
    })
}

fn one(seed: u64, mutant: Option<DriverMutant>, lines: usize) -> bool {
    let outcome = runs::play(seed, mutant, true);
    let from = outcome.lines.len().saturating_sub(lines);
    for line in outcome.lines.iter().skip(from) {
        println!("{line}");
    }
    match &outcome.violation {
        None => println!("\nseed {seed}: all invariants held"),
        Some(violation) => println!(
            "\nseed {seed}: {} violated at {:.3} s: {}",
            violation.invariant,
            violation.at.as_secs_f64(),
            violation.story
        ),
    }
    outcome.violation.is_none()
}

fn many(mutant: Option<DriverMutant>, arguments: &Arguments) -> bool {
    let (counts, failures) = runs::play_many(arguments.first, arguments.seeds, mutant, 10);
    println!(
        "seeds            {}\nvirtual hours    {:.1}\nelections        {}\nsteps of work    {}\nfaults           {}\nfailed work      {}",
        arguments.seeds,
        counts.millis as f64 / 3_600_000.0,
        counts.elections,
        counts.steps,
        counts.faults,
        counts.failures
    );
    for failure in &failures {
        let violation = &failure.violation;
        println!("seed {}: {} violated: {}", failure.seed, violation.invariant, violation.story);
    }
    // Runs in which nothing happens prove nothing.
    let eventful = counts.elections > arguments.seeds * 2 && counts.faults > arguments.seeds * 4;
    match failures.first() {
        Some(failure) => {
            let plant = mutant.map_or(String::new(), |it| format!(" --mutant {}", it.name()));
            let seed = failure.seed;
            println!(
                "\nto see it again:\n  cargo run --release -p incumbent-drill -- --seed {seed}{plant}"
            );
        }
        None if eventful => println!("passed"),
        None => println!("invalid: too little happened to mean anything"),
    }
    failures.is_empty() && eventful
}

fn mutants(arguments: &Arguments) -> bool {
    let mut escaped = 0;
    for mutant in DriverMutant::ALL {
        let checker = caught_by(*mutant);
        let (_, failures) = runs::play_many(arguments.first, arguments.seeds, Some(*mutant), 5);
        let right = failures.iter().filter(|failure| failure.violation.invariant == checker);
        let seeds: Vec<String> = right.map(|failure| failure.seed.to_string()).collect();
        let verdict = if seeds.is_empty() { "ESCAPED" } else { "caught" };
        println!(
            "{verdict:<8} {:<28} by {checker:<12} in seeds {}",
            mutant.name(),
            seeds.join(", ")
        );
        escaped += usize::from(seeds.is_empty());
        if seeds.is_empty() {
            for failure in &failures {
                println!("         seed {}: {}", failure.seed, failure.violation.invariant);
            }
        }
    }
    let all = DriverMutant::ALL.len();
    println!("\n{} of {all} planted mistakes caught", all - escaped);
    escaped == 0
}
