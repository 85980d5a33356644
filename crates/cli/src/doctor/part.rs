//! What `doctor` lets other processes do: parts that start processes of their own, or are to be
//! killed.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use incumbent::clock;
use incumbent_supervise::{Guard, Isolation, Layout, Plan};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Outcome};
use crate::out::say;

/// A part.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// Says how `run` would supervise a command here.
    Layout,
    /// Runs while it holds the lease of a race.
    Race {
        /// The file that only one of them can lock.
        lock: PathBuf,
    },
}

/// How `run` would supervise a command here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Supervised {
    /// In a PID namespace of its own.
    pub(crate) isolated: bool,
    /// Whether that was tried.
    pub(crate) privileged: bool,
    /// Why the death of this process can't be proven to others, if it can't.
    pub(crate) unproven: Option<String>,
}

/// What somebody who has won the lease of a race says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Its name.
    pub(crate) node: String,
    /// Its term.
    pub(crate) term: u64,
    /// When, on the clock that all processes of the machine share.
    pub(crate) at: u64,
    /// Whether nobody else ran.
    pub(crate) alone: bool,
}

/// Plays the part.
pub(crate) fn run(part: &Part) -> Outcome {
    match part {
        Part::Layout => layout(),
        Part::Race { lock } => race(lock),
    }
}

fn layout() -> Outcome {
    let second = Duration::from_secs(1);
    let plan = Plan {
        command: vec!["true".into()],
        isolation: Isolation::Auto,
        warning: second,
        fuse: second,
    };
    let guard = Guard::prepare(&plan)?;
    let supervised = Supervised {
        isolated: guard.layout() == Layout::Isolated,
        privileged: rustix::process::geteuid().is_root(),
        unproven: guard.evidence().err().map(|error| error.to_string()),
    };
    say!("{}", serde_json::to_string(&supervised).map_err(Failure::internal)?);
    Ok(())
}

/// Says that it runs, and goes on until it is killed or `doctor` is gone.
fn race(lock: &PathBuf) -> Outcome {
    let lock = File::options().append(true).open(lock)?;
    let alone = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let start = Start {
        node: variable("INCUMBENT_NODE"),
        term: variable("INCUMBENT_TERM")
            .parse()
            .map_err(|_| Failure::usage("only `incumbent doctor` starts this"))?,
        at: clock::now().as_nanos(),
        alone,
    };
    say!("{}", serde_json::to_string(&start).map_err(Failure::internal)?);
    let mut nothing = [0; 64];
    while !matches!(std::io::stdin().read(&mut nothing), Ok(0) | Err(_)) {}
    Ok(())
}
