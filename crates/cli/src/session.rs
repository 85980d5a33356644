//! What every command needs to know.

use std::future::Future;

use crate::arguments::Arguments;
use crate::exit::Outcome;
use crate::out::{note, say};
use crate::place::Place;
use crate::style::DIM;

/// What every command needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Where the cluster is.
    pub(crate) place: Place,
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Whether to say only what was asked for.
    pub(crate) quiet: bool,
    verbose: u8,
}

impl Session {
    /// What the command line says.
    pub(crate) fn new(arguments: &Arguments) -> Outcome<Self> {
        let place = Place::new(arguments.store.as_deref(), arguments.cluster.as_deref())?;
        let session = Self {
            place,
            json: arguments.json,
            quiet: arguments.quiet,
            verbose: arguments.verbose,
        };
        if session.verbose > 1 {
            tracing_subscriber::fmt()
                .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
                .with_writer(std::io::stderr)
                .without_time()
                .init();
        }
        Ok(session)
    }

    /// Runs a command that talks to the store.
    pub(crate) fn block_on<T>(&self, command: impl Future<Output = Outcome<T>>) -> Outcome<T> {
        if self.verbose > 0 {
            let (store, cluster) = (self.place.shown(), &self.place.cluster);
            note!("{DIM}store {store}, cluster {cluster}{DIM:#}");
        }
        // More than one thread, because the conformance kit wants races that are real.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(command)
    }

    /// Prints a JSON value in one line, or more beautifully to a person.
    pub(crate) fn print_json(&self, value: &serde_json::Value) {
        say!("{value:#}");
    }

    /// Says something that only people want to know, on standard error.
    pub(crate) fn remark(&self, remark: impl std::fmt::Display) {
        if !self.quiet {
            note!("{remark}");
        }
    }

    /// Says something that few want to know, on standard error.
    pub(crate) fn detail(&self, detail: impl std::fmt::Display) {
        if self.verbose > 0 {
            note!("{DIM}{detail}{DIM:#}");
        }
    }
}
