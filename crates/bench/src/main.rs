//! What incumbent costs. Everything is a ratio of things measured in one run, because absolute
//! times say more about the machine. Goals stand beside results; nothing passes or fails here.

mod allocations;
mod beat;
#[cfg(feature = "all-stores")]
mod cost;
mod counting;
#[cfg(feature = "all-stores")]
mod duties;
#[cfg(feature = "all-stores")]
mod fleet;
mod hand_over;
mod partner;
#[cfg(feature = "all-stores")]
mod peers;
mod plan;
mod player;
mod question;
mod report;
mod spread;
#[cfg(feature = "all-stores")]
mod stores;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
#[cfg(feature = "all-stores")]
use incumbent::witness::Status;

use crate::report::Report;

/// Measures what incumbent costs.
#[derive(Debug, Parser)]
#[command(name = "incumbent-bench", version)]
struct Arguments {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure only this; may be given several times.
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// How many hand-overs to measure.
    #[arg(long, default_value_t = 200, value_name = "N")]
    hand_overs: usize,
    /// How many beats to measure for each number of leases.
    #[arg(long, default_value_t = 200, value_name = "N")]
    beats: usize,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The question "do I lead?" against a bare clock read.
    Question,
    /// One beat with 1, 100 and 10,000 leases.
    Beat,
    /// A clean hand-over between two processes against a bare commit.
    HandOver,
    /// Plans for 100,000 duties on 1,000 nodes.
    Plan,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every store beside its own bare compare-and-swap. The servers are those that the tests
    /// use, named by their variables; `cargo xtask bench` starts them.
    #[cfg(feature = "all-stores")]
    Stores(stores::StoresArguments),
    /// What nodes cost the server of each store while nothing happens, counted on the way there.
    #[cfg(feature = "all-stores")]
    Cost(cost::CostArguments),
    /// Many nodes on one PostgreSQL, in few processes: fails if a single one is lost.
    #[cfg(feature = "all-stores")]
    Fleet(fleet::FleetArguments),
    /// Many duties on a few nodes of one PostgreSQL, of which one is killed.
    #[cfg(feature = "all-stores")]
    Duties(duties::DutiesArguments),
    /// incumbent beside its peers, on private servers that this starts; see docs/benchmarks.md.
    #[cfg(feature = "all-stores")]
    Peers(peers::PeersArguments),
    /// One of the processes that run duties; started by the benchmark itself.
    #[cfg(feature = "all-stores")]
    #[command(hide = true)]
    Hand {
        /// The store.
        url: String,
        /// The cluster.
        cluster: String,
        /// The node's name.
        node: String,
        /// How many duties there are.
        duties: usize,
        /// Its ttl in milliseconds.
        ttl: u64,
        /// A helper process sees its end, which `main` has started.
        #[arg(long)]
        witness: bool,
    },
    /// One of the processes of a fleet; started by the benchmark itself.
    #[cfg(feature = "all-stores")]
    #[command(hide = true)]
    Crew {
        /// The store.
        url: String,
        /// The cluster.
        cluster: String,
        /// How many nodes.
        nodes: usize,
    },
    /// The other process of a hand-over; started by the benchmark itself.
    #[command(hide = true)]
    Player {
        /// The store.
        url: String,
        /// The cluster.
        cluster: String,
        /// The node's name.
        node: String,
    },
}

fn main() -> Result<()> {
    // Before anything else, because the helper is this program once more, under another name and without arguments.
    let mut words = std::env::args();
    if words.next().is_some_and(|name| name == "incumbent-witness")
        || words.any(|word| word == "--witness")
    {
        incumbent::witness::init()?;
    }
    let arguments = Arguments::parse();
    match &arguments.command {
        #[cfg(feature = "all-stores")]
        Some(Command::Stores(stores)) => return stores::measure(stores),
        #[cfg(feature = "all-stores")]
        Some(Command::Cost(cost)) => return cost::measure(cost),
        #[cfg(feature = "all-stores")]
        Some(Command::Fleet(fleet)) => return fleet::measure(fleet),
        #[cfg(feature = "all-stores")]
        Some(Command::Crew { url, cluster, nodes }) => return fleet::crew(url, cluster, *nodes),
        #[cfg(feature = "all-stores")]
        Some(Command::Duties(duties)) => return duties::measure(duties),
        #[cfg(feature = "all-stores")]
        Some(Command::Peers(peers)) => return peers::measure(peers),
        #[cfg(feature = "all-stores")]
        Some(Command::Hand { url, cluster, node, duties, ttl, witness }) => {
            let status = incumbent::witness::status();
            let there = matches!(status, Status::Starting | Status::Ready);
            anyhow::ensure!(there || !witness, "there is no witness: {status:?}");
            let ttl = std::time::Duration::from_millis(*ttl);
            return duties::hand(url, cluster, node, *duties, ttl);
        }
        Some(Command::Player { url, cluster, node }) => return player::play(url, cluster, node),
        None => {}
    }
    let wanted = |part: Part| arguments.only.is_empty() || arguments.only.contains(&part);
    let mut report = Report::default();
    if wanted(Part::Question) {
        question::measure(&mut report)?;
    }
    if wanted(Part::Beat) {
        beat::measure(arguments.beats, &mut report)?;
    }
    if wanted(Part::HandOver) {
        hand_over::measure(arguments.hand_overs, &mut report)?;
    }
    if wanted(Part::Plan) {
        plan::measure(&mut report)?;
    }
    report.print(arguments.json);
    Ok(())
}
