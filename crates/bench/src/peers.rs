//! incumbent beside its peers, in one run on the same servers. `docs/benchmarks.md` says what each measure is.

mod away;
mod build;
mod change;
mod chart;
mod contender;
mod field;
mod growth;
mod hinting;
mod idle;
mod load;
mod machine;
mod measure;
mod page;
mod placement;
mod player;
mod section;
mod servers;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use incumbent::clock;

use self::contender::{Contender, Store};
use self::field::{Deadline, Entrant, Field};
use self::section::Section;
use self::servers::Servers;

/// What is measured, how often, and for how long.
#[derive(Args, Debug)]
pub(crate) struct PeersArguments {
    /// Fewer samples, and only into the build directory: to see that it works.
    #[arg(long)]
    quick: bool,
    /// Begin nothing new after so many minutes; what was measured by then is kept.
    #[arg(long, default_value_t = 32, value_name = "N")]
    minutes: u64,
    /// How many samples of each change of leaders; 30, or 3 with --quick.
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Measure only this; may be given several times.
    #[arg(long, value_enum)]
    measure: Vec<Measure>,
    /// Measure only this contender, by its name here or its store's; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Build all programs, and measure nothing.
    #[arg(long)]
    build_only: bool,
}

/// The measures, in the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// SIGKILL of the leader until another leads.
    Kill,
    /// SIGSTOP of the leader until another leads, and what the first believes once it goes on.
    Pause,
    /// SIGTERM of the leader until another leads.
    Resign,
    /// What a leader and a waiter of 1, 100, 1,000 and 10,000 leases cost the server.
    Load,
    /// Until 1,000 leases are taken by one process.
    Take,
    /// The store is away for 4 s and for 30 s.
    Away,
    /// Memory and time of a processor of an idle process with many leases or duties.
    Idle,
    /// 1,000 and 10,000 duties on ten nodes, of which one is killed.
    Duties,
    /// Fleets of 10 to 3,000 nodes.
    Growth,
    /// Hand-overs on stores that push nothing, with hints between nodes and without.
    Hints,
    /// "Do I lead?" against a bare read of the clock.
    Question,
}

/// The places in the page.
#[cfg(test)]
const KEYS: [&str; 13] = [
    "machine", "kill", "pause", "overlap", "resign", "load", "take", "away", "idle", "duties",
    "growth", "hints", "question",
];

impl Measure {
    /// Its share of the time, in what all of them take together.
    fn weight(self) -> u32 {
        match self {
            Self::Kill => 24,
            Self::Pause => 30,
            Self::Resign => 16,
            Self::Load => 16,
            Self::Take => 8,
            Self::Away => 20,
            Self::Idle => 20,
            Self::Duties => 26,
            Self::Growth => 36,
            Self::Hints => 7,
            Self::Question => 1,
        }
    }
}

pub(crate) fn measure(arguments: &PeersArguments) -> Result<()> {
    let wanted: Vec<&Contender> = contender::ALL.iter().filter(|it| arguments.wants(it)).collect();
    ensure!(!wanted.is_empty(), "nobody is called {}", arguments.only.join(" or "));
    let mut absent = Vec::new();
    let mut entrants = Vec::new();
    for contender in &wanted {
        match build::build(contender) {
            Ok(program) => entrants.push(Entrant { contender: **contender, program }),
            Err(error) => absent.push(format!("{}: left out: {error:#}", contender.label())),
        }
    }
    if arguments.build_only {
        println!("{} of {} programs are built", entrants.len(), wanted.len());
        absent.iter().for_each(|line| println!("{line}"));
        return Ok(());
    }
    let (servers, missing) = Servers::start(&wanted)?;
    entrants.retain(|entrant| match missing.get(&entrant.contender.store) {
        Some(why) => {
            absent.push(format!("{}: left out: {why}", entrant.contender.label()));
            false
        }
        None => true,
    });
    absent.iter().for_each(|line| println!("{line}"));
    let field = Field::new(entrants, servers, Duration::from_secs(10));
    arguments.prepare()?;
    arguments.show(&machine::section(&field, &absent));
    let deadline = Deadline::after(Duration::from_secs(60 * arguments.minutes));
    let all = Measure::value_variants().iter().copied();
    let chosen = all.filter(|it| arguments.measure.is_empty() || arguments.measure.contains(it));
    let mut left: Vec<Measure> = chosen.collect();
    while !left.is_empty() {
        let whole: u32 = left.iter().map(|measure| measure.weight()).sum();
        let next = left.remove(0);
        let span = deadline.left() * next.weight() / whole;
        if span < Duration::from_secs(5) {
            println!("\n{next:?}: no time is left for it; --minutes gives more");
            continue;
        }
        println!("\n== {next:?}, {} s at most ==\n", span.as_secs());
        let began = clock::now();
        for section in measure::take(next, &field, arguments.sizes(), Deadline::after(span)) {
            arguments.show(&section);
        }
        println!("{next:?} took {} s", clock::now().since(began).as_secs());
    }
    Ok(())
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    samples: usize,
    takes: usize,
    absences: usize,
    /// How many nodes die, one after another.
    losses: usize,
    /// The most leases and duties.
    most: usize,
    fleets: &'static [(Store, usize)],
    window: Duration,
}

const FLEETS: [(Store, usize); 6] = [
    (Store::Postgres, 10),
    (Store::Postgres, 100),
    (Store::Postgres, 1000),
    (Store::Redis, 1000),
    (Store::Etcd, 1000),
    (Store::Postgres, 3000),
];

const FEW: [(Store, usize); 4] =
    [(Store::Postgres, 10), (Store::Postgres, 100), (Store::Redis, 10), (Store::Etcd, 10)];

impl PeersArguments {
    fn wants(&self, contender: &Contender) -> bool {
        let named = |name: &String| {
            name == contender.key || name.eq_ignore_ascii_case(contender.store.title())
        };
        self.only.is_empty() || self.only.iter().any(named)
    }

    fn sizes(&self) -> Sizes {
        let few = self.samples.unwrap_or(3);
        let quick = Sizes {
            samples: few,
            takes: 1,
            absences: 1,
            losses: 1,
            most: 1000,
            fleets: &FEW,
            window: Duration::from_secs(10),
        };
        if self.quick {
            return quick;
        }
        Sizes {
            samples: self.samples.unwrap_or(30),
            takes: 7,
            absences: 3,
            losses: 3,
            most: 10_000,
            fleets: &FLEETS,
            window: Duration::from_secs(20),
        }
    }

    /// Prints it and keeps it. That it can't be kept is no reason to end.
    fn show(&self, section: &Section) {
        println!("{}:\n\n{}", section.key, section.table);
        let kept = self.documents().and_then(|documents| page::put(&documents, section));
        if let Err(error) = kept {
            println!("{} isn't kept: {error:#}", section.key);
        }
    }

    /// Where the page is: with --quick a copy in the build directory.
    fn documents(&self) -> Result<PathBuf> {
        if self.quick { copy() } else { Ok(build::root().join("docs")) }
    }

    /// With --quick the page is written into a new copy.
    fn prepare(&self) -> Result<()> {
        if self.quick {
            let page = build::root().join("docs/benchmarks.md");
            std::fs::create_dir_all(copy()?)?;
            std::fs::copy(page, copy()?.join("benchmarks.md"))?;
        }
        Ok(())
    }
}

fn copy() -> Result<PathBuf> {
    Ok(build::target()?.join("peers/docs"))
}
