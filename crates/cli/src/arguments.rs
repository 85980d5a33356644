//! The command line.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::command::ask::{self, DutyArguments, MoveArguments, NodeName, PinArguments};
use crate::command::completions::{self, CompletionsArguments};
use crate::command::doctor::{self, DoctorArguments};
use crate::command::duties::{self, DutiesArguments, ExplainArguments, PlanArguments};
use crate::command::evict::{self, EvictArguments};
use crate::command::history::{self, HistoryArguments};
use crate::command::intents::{self, IntentsArguments};
use crate::command::leader::{self, LeaderArguments};
use crate::command::man::{self, ManArguments};
use crate::command::resign::{self, ResignArguments};
use crate::command::rollout::RolloutCommand;
#[cfg(target_os = "linux")]
use crate::command::run::{self, RunArguments};
#[cfg(feature = "serve")]
use crate::command::serve::{self, ServeArguments};
use crate::command::status;
use crate::command::store::StoreCommand;
use crate::command::top;
use crate::command::transfer::{self, TransferArguments};
use crate::command::watch::{self, WatchArguments};
use crate::demo::node::NodeArguments;
use crate::demo::{self, DemoArguments};
#[cfg(target_os = "linux")]
use crate::doctor::part::Part;
use crate::exit;

/// Leader election, membership and fencing on the store that your application already runs.
#[derive(Debug, Parser)]
#[command(name = "incumbent", version, max_term_width = 100, arg_required_else_help = true)]
#[command(subcommand_value_name = "COMMAND", after_help = after_help())]
pub(crate) struct Arguments {
    /// Where the records live, such as sqlite:app.db [default: a file in your state directory].
    /// Keep passwords out of it: use INCUMBENT_STORE, or passwordfile= in the URL
    #[arg(long, global = true, value_name = "URL", env = "INCUMBENT_STORE")]
    #[arg(hide_env_values = true)]
    pub(crate) store: Option<String>,

    /// Whether the flag for the store was moved to the variable, so that nobody sees its password
    #[arg(long, global = true, hide = true)]
    pub(crate) store_hidden: bool,

    /// The cluster in that store [default: default]
    #[arg(long, global = true, value_name = "NAME", env = "INCUMBENT_CLUSTER")]
    #[arg(hide_env_values = true)]
    pub(crate) cluster: Option<String>,

    /// A configuration file [default: incumbent/incumbent.toml in your configuration directory]
    #[arg(long, global = true, value_name = "FILE", env = "INCUMBENT_CONFIG")]
    #[arg(hide_env_values = true)]
    pub(crate) config: Option<OsString>,

    /// Where this node takes hints from others, if the store pushes none: auto (from this host), off, or an
    /// address of this machine such as 10.0.0.7:7946 [default: auto]
    #[arg(long, global = true, value_name = "WHERE", env = "INCUMBENT_HINTS")]
    #[arg(hide_env_values = true)]
    pub(crate) hints: Option<String>,

    /// A file with the key that authenticates hints between nodes
    #[arg(long, global = true, value_name = "FILE", env = "INCUMBENT_HINT_KEY_FILE")]
    #[arg(hide_env_values = true)]
    pub(crate) hint_key_file: Option<OsString>,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print more on standard error; give it twice to see everything that goes on inside
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print only the answer
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch leaders change in a cluster of real processes on this machine
    #[command(after_help = demo::EXAMPLES)]
    Demo(DemoArguments),
    /// Run a command while holding a lease
    #[cfg(target_os = "linux")]
    #[command(after_help = run::EXAMPLES)]
    Run(RunArguments),
    /// Serve the cluster over HTTP: to programs in any language, load balancers and operators
    #[cfg(feature = "serve")]
    #[command(after_help = serve::EXAMPLES)]
    Serve(ServeArguments),
    /// Show members, leases and duties as they are now
    #[command(after_help = status::EXAMPLES)]
    Status,
    /// Show a live view of members, leases, duties and changes
    #[command(after_help = top::EXAMPLES)]
    Top,
    /// Show who leads a lease, and how to reach it
    #[command(after_help = leader::EXAMPLES)]
    Leader(LeaderArguments),
    /// Follow changes as they happen
    #[command(after_help = watch::EXAMPLES)]
    Watch(WatchArguments),
    /// Show who led when, why that changed, and where duties moved
    #[command(after_help = history::EXAMPLES)]
    History(HistoryArguments),
    /// Ask the leader of a lease to give it up
    #[command(after_help = resign::EXAMPLES)]
    Resign(ResignArguments),
    /// Ask the leader of a lease to give it to another node
    #[command(after_help = transfer::EXAMPLES)]
    Transfer(TransferArguments),
    /// Remove a member from the cluster
    #[command(after_help = evict::EXAMPLES)]
    Evict(EvictArguments),
    /// Show where duties run, and which don't run
    #[command(after_help = duties::DUTIES_EXAMPLES)]
    Duties(DutiesArguments),
    /// Explain why a duty runs where it runs, or why it doesn't
    #[command(after_help = duties::EXPLAIN_EXAMPLES)]
    Explain(ExplainArguments),
    /// Show which duties would move
    #[command(after_help = duties::PLAN_EXAMPLES)]
    Plan(PlanArguments),
    /// Pin a duty to a node
    #[command(after_help = ask::PIN_EXAMPLES)]
    Pin(PinArguments),
    /// Remove a pin
    #[command(after_help = ask::PIN_EXAMPLES)]
    Unpin(DutyArguments),
    /// Stop a duty, and keep it stopped
    #[command(after_help = ask::PAUSE_EXAMPLES)]
    Pause(DutyArguments),
    /// Let a paused duty run again
    #[command(after_help = ask::PAUSE_EXAMPLES)]
    Resume(DutyArguments),
    /// Move a duty to a node, once
    #[command(after_help = ask::MOVE_EXAMPLES)]
    Move(MoveArguments),
    /// Give a node no more duties
    #[command(after_help = ask::NODE_EXAMPLES)]
    Cordon(NodeName),
    /// Give a cordoned node duties again
    #[command(after_help = ask::NODE_EXAMPLES)]
    Uncordon(NodeName),
    /// Move all duties away from a node
    #[command(after_help = ask::NODE_EXAMPLES)]
    Drain(NodeName),
    /// Give a drained node duties again
    #[command(after_help = ask::NODE_EXAMPLES)]
    Undrain(NodeName),
    /// Stop moving duties just to balance the load
    #[command(after_help = ask::FREEZE_EXAMPLES)]
    Freeze,
    /// Move duties again to balance the load
    #[command(after_help = ask::FREEZE_EXAMPLES)]
    Thaw,
    /// Show what operators asked for, or withdraw it
    #[command(after_help = intents::EXAMPLES)]
    Intents(IntentsArguments),
    /// Show how new versions are doing; hold, promote, abort or try them
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// Check the store and this machine, and find out which ttl fits
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArguments),
    /// Check a store, create what it needs, repair its records, remove a cluster
    #[command(subcommand)]
    Store(StoreCommand),
    /// Print the completions for a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(CompletionsArguments),
    /// Print the manual
    #[command(after_help = man::EXAMPLES)]
    Man(ManArguments),
    /// One node of the demo
    #[command(hide = true)]
    DemoNode(NodeArguments),
    /// A part of doctor that is a process of its own
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    DoctorPart {
        /// The part.
        #[command(subcommand)]
        part: Part,
    },
}

impl Command {
    /// Whether it looks for a cluster.
    pub(crate) fn has_place(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Self::DoctorPart { .. } = self {
            return false;
        }
        !matches!(self, Self::Completions(_) | Self::Man(_))
    }

    /// Whether hints are nothing to it: it only looks, or keeps to itself.
    pub(crate) fn gives_no_hints(&self) -> bool {
        let apart = !self.has_place() || !self.is_configured();
        let looks = matches!(
            self,
            Self::Status
                | Self::Top
                | Self::Leader(_)
                | Self::Watch(_)
                | Self::History(_)
                | Self::Duties(_)
                | Self::Explain(_)
                | Self::Plan(_)
        );
        apart || looks
    }

    /// Whether it does as the configuration file says. A demo doesn't: it is for trying, and must
    /// not do that where the user's own cluster is.
    pub(crate) fn is_configured(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Self::DoctorPart { .. } = self {
            return false;
        }
        !matches!(self, Self::Demo(_) | Self::DemoNode(_) | Self::Completions(_) | Self::Man(_))
    }
}

fn after_help() -> String {
    format!(
        "Examples:
  incumbent demo
  incumbent run --lease scheduler -- ./scheduler
  incumbent --store sqlite:app.db --cluster billing status
  incumbent leader scheduler --json

{}",
        exit::TABLE
    )
}
