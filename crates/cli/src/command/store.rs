//! `incumbent store …`: the store itself.

pub(crate) mod check;
mod handle;
pub(crate) mod init;
pub(crate) mod losses;
pub(crate) mod repair;
pub(crate) mod reset;
pub(crate) mod schema;

use clap::{Args, Subcommand};

use crate::exit::Outcome;
use crate::session::Session;

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Try everything that a store must do on this one, and measure it
    #[command(after_help = check::EXAMPLES)]
    Check(UrlArgument),
    /// Print what incumbent creates in the store
    #[command(after_help = schema::EXAMPLES)]
    Schema(UrlArgument),
    /// Create what incumbent needs in the store
    #[command(after_help = init::EXAMPLES)]
    Init(UrlArgument),
    /// List records that can't be read, and repair them as far as that is safe
    #[command(after_help = repair::EXAMPLES)]
    Repair(repair::RepairArguments),
    /// Remove a cluster with all its terms
    #[command(after_help = reset::EXAMPLES)]
    Reset(reset::ResetArguments),
}

impl StoreCommand {
    /// The store that is named after the command.
    pub(crate) fn url(&self) -> Option<&str> {
        match self {
            Self::Check(argument) | Self::Schema(argument) | Self::Init(argument) => {
                argument.url.as_deref()
            }
            Self::Repair(_) | Self::Reset(_) => None,
        }
    }
}

/// Which store.
#[derive(Args, Debug)]
pub(crate) struct UrlArgument {
    /// The store [default: that of --store]
    url: Option<String>,
}

/// Does it.
pub(crate) fn run(session: &Session, command: &StoreCommand) -> Outcome {
    let at = |argument: &UrlArgument| {
        let mut session = session.clone();
        session.place = session.place.with_store(argument.url.as_deref());
        session
    };
    match command {
        StoreCommand::Check(url) => at(url).block_on(check::run(&at(url))),
        StoreCommand::Schema(url) => schema::run(&at(url)),
        StoreCommand::Init(url) => at(url).block_on(init::run(&at(url))),
        StoreCommand::Repair(arguments) => session.block_on(repair::run(session, arguments)),
        StoreCommand::Reset(arguments) => session.block_on(reset::run(session, arguments)),
    }
}
