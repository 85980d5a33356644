//! `incumbent store …`: the store itself.

pub(crate) mod check;
mod handle;
pub(crate) mod init;
pub(crate) mod losses;
pub(crate) mod reset;
pub(crate) mod schema;

use clap::{Args, Subcommand};

use crate::exit::Outcome;
use crate::session::Session;

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Try on this very store what every store must do, and measure it
    #[command(after_help = check::EXAMPLES)]
    Check(UrlArgument),
    /// Print what incumbent creates in the store
    #[command(after_help = schema::EXAMPLES)]
    Schema(UrlArgument),
    /// Create it
    #[command(after_help = init::EXAMPLES)]
    Init(UrlArgument),
    /// Remove a cluster with all its terms
    #[command(after_help = reset::EXAMPLES)]
    Reset(reset::ResetArguments),
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
        StoreCommand::Reset(arguments) => session.block_on(reset::run(session, arguments)),
    }
}
