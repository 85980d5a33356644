//! `incumbent demo`: a cluster of real processes on this machine, to see leaders change and duties
//! move.

mod ledger;
mod live;
mod news;
pub(crate) mod node;
#[cfg(feature = "serve")]
mod page;
mod process;
mod stage;
mod tour;
mod word;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use incumbent::{LeaseName, NameError, clock};
use tempfile::TempDir;

use self::process::Recipe;
use self::stage::Stage;
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt;
use crate::place::Place;
use crate::span;

/// The leases that the nodes stand for, if the user names none.
const LEASES: [&str; 3] = ["scheduler", "outbox", "reports"];

/// The family of the duties that the nodes serve.
const FAMILY: &str = "projection";

/// The duties of that family.
const DUTIES: [&str; 6] = ["customers", "invoices", "orders", "payments", "returns", "stock"];

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
On a terminal: a live view with keys to kill, pause, resume, drain and steer nodes. Elsewhere, or
with --tour: a scripted tour of about 30 s that does all of this, checks that there never were two
leaders and that no duty ran twice at once, and exits with 1 if anything was wrong.

Examples:
  incumbent demo
  incumbent demo --tour
  incumbent demo --nodes 5 --ttl 5s --lease scheduler
  incumbent --store sqlite:demo.db --cluster trial demo  # and `top` beside it";

/// How the demo shall be.
#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Play the scripted tour of about 30 s, even on a terminal
    #[arg(long)]
    tour: bool,
    /// How many nodes to start with, from 3 to 20
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=20))]
    nodes: u8,
    /// How long others wait for a node before they take over
    #[arg(long, value_name = "SPAN", default_value = "3s", value_parser = span::ttl)]
    ttl: Duration,
    /// A lease that the nodes contend for; can be given several times
    #[arg(long = "lease", value_name = "NAME", default_values = LEASES, value_parser = lease)]
    leases: Vec<String>,
}

/// Reads the name of a lease.
fn lease(text: &str) -> Result<String, NameError> {
    LeaseName::new(text).map(|_| text.to_owned())
}

/// Shows the live view on a terminal, and the tour elsewhere.
pub(crate) fn run(place: &Place, arguments: &DemoArguments) -> Outcome {
    // One thread for all: the kernel ties the life of each node to the thread that started it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(play(place, arguments))
}

async fn play(place: &Place, arguments: &DemoArguments) -> Outcome {
    let live = !arguments.tour && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let mut stage = set(place, arguments).await?;
    let played = tokio::select! {
        played = perform(&mut stage, usize::from(arguments.nodes), live) => played,
        signal = interrupt::received() => {
            let said = format!("interrupted by {signal}; all nodes were ended");
            Err(Failure::new(Code::Interrupted, said))
        }
    };
    stage.end().await;
    played
}

async fn perform(stage: &mut Stage, nodes: usize, live: bool) -> Outcome {
    if live { live::run(stage, nodes).await } else { tour::run(stage, nodes).await }
}

/// A directory for the store of the demo.
fn scratch() -> Outcome<TempDir> {
    tempfile::Builder::new().prefix("incumbent-demo-").tempdir().map_err(|error| {
        Failure::new(
            Code::Unsupervised,
            format!(
                "no directory for the demo can be made: {error}. Let TMPDIR name a directory that \
                 you may write to, or name a store with --store"
            ),
        )
    })
}

/// A store of the demo's own in a temporary directory, unless one was named.
async fn set(place: &Place, arguments: &DemoArguments) -> Outcome<Stage> {
    let mut place = place.clone();
    let scratch = if place.store_chosen {
        None
    } else {
        let scratch = scratch()?;
        place.url = format!("sqlite:{}", scratch.path().join("demo.db").display());
        place.store_chosen = true;
        Some(scratch)
    };
    if !place.cluster_chosen {
        place.cluster = match scratch {
            Some(_) => "demo".to_owned(),
            // A name of its own in a store that others use, so that it can be removed later.
            None => format!("demo-{}-{}", std::process::id(), clock::wall_ms()),
        };
    }
    let recipe = Recipe { place, ttl: arguments.ttl, leases: arguments.leases.clone() };
    Stage::open(recipe, scratch).await
}
