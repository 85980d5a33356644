//! The command line.

use clap::{Parser, Subcommand};

use crate::demo::DemoArguments;
use crate::demo::node::NodeArguments;
use crate::exit;

/// Leader election, membership and fencing on the store that your application already runs.
#[derive(Debug, Parser)]
#[command(name = "incumbent", version, max_term_width = 100, arg_required_else_help = true)]
#[command(subcommand_value_name = "COMMAND", after_help = exit::TABLE)]
pub(crate) struct Arguments {
    /// Where the records live, such as sqlite:app.db [default: a file in your state directory]
    #[arg(long, global = true, value_name = "URL", env = "INCUMBENT_STORE")]
    #[arg(hide_env_values = true)]
    pub(crate) store: Option<String>,

    /// The cluster in that store [default: default]
    #[arg(long, global = true, value_name = "NAME", env = "INCUMBENT_CLUSTER")]
    pub(crate) cluster: Option<String>,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say more on standard error; twice for all that goes on inside
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Say only what was asked for
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See leaders change: a cluster of real processes on this machine
    Demo(DemoArguments),
    /// One node of the demo
    #[command(hide = true)]
    DemoNode(NodeArguments),
}
