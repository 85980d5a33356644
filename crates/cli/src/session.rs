//! What every command needs to know.

use std::future::Future;
use std::path::Path;

use clap::ArgMatches;

use crate::arguments::Arguments;
use crate::config::{Config, Entry};
use crate::exit::Outcome;
use crate::out::{note, say};
use crate::place::Place;
use crate::setting::Origin;
use crate::style::DIM;

/// What every command needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Where the cluster is.
    pub(crate) place: Place,
    /// Who chose the store.
    pub(crate) store_origin: Origin,
    /// Who chose the cluster.
    pub(crate) cluster_origin: Origin,
    /// What the configuration file says.
    pub(crate) config: Config,
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Whether to say only what was asked for.
    pub(crate) quiet: bool,
    verbose: u8,
}

impl Session {
    /// What the command line, the environment and the configuration file say.
    pub(crate) fn new(arguments: &Arguments, matches: &ArgMatches) -> Outcome<Self> {
        let config = if arguments.command.is_configured() {
            Config::find(arguments.config.as_deref().map(Path::new))?
        } else {
            Config::default()
        };
        let given = Origin::of(matches, "store", "--store", "INCUMBENT_STORE");
        let (store, store_origin) =
            choose(arguments.store.as_ref(), given, &config, config.store.as_ref());
        let given = Origin::of(matches, "cluster", "--cluster", "INCUMBENT_CLUSTER");
        let (cluster, cluster_origin) =
            choose(arguments.cluster.as_ref(), given, &config, config.cluster.as_ref());
        let session = Self {
            place: Place::new(store.as_deref(), cluster.as_deref())?,
            store_origin,
            cluster_origin,
            config,
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
            let (from, of) = (&self.store_origin, &self.cluster_origin);
            note!("{DIM}store {store} ({from}), cluster {cluster} ({of}){DIM:#}");
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

/// What was given, or else what the file says. What is set to nothing counts as not set, as shells
/// and orchestrators do.
fn choose(
    given: Option<&String>,
    origin: Origin,
    config: &Config,
    entry: Option<&Entry<String>>,
) -> (Option<String>, Origin) {
    let given = given.filter(|text| !text.is_empty()).map(|text| (text.clone(), origin));
    let filed = || entry.map(|entry| (entry.value.clone(), Origin::line(config, entry)));
    match given.or_else(filed) {
        Some((text, origin)) => (Some(text), origin),
        None => (None, Origin::Default),
    }
}
