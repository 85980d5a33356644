//! What every command needs to know.

use std::ffi::OsStr;
use std::future::Future;
use std::path::Path;

use clap::ArgMatches;

use crate::arguments::Arguments;
use crate::config::{Config, Entry};
use crate::exit::{Failure, Outcome};
use crate::hints;
use crate::log;
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
    pub(crate) fn new<'a>(arguments: &'a Arguments, matches: &ArgMatches) -> Outcome<Self> {
        let config = if arguments.command.is_configured() {
            let given = Origin::of(matches, "config", "--config", "INCUMBENT_CONFIG");
            refuse_nothing(arguments.config.as_deref().and_then(OsStr::to_str), &given)?;
            Config::find(arguments.config.as_deref().map(Path::new))?
        } else {
            Config::default()
        };
        // What says where a cluster is doesn't matter to who looks for none.
        let named =
            |name: &'a Option<String>| name.as_deref().filter(|_| arguments.command.has_place());
        let given = match arguments.store_hidden {
            true => Origin::Flag("--store"),
            false => Origin::of(matches, "store", "--store", "INCUMBENT_STORE"),
        };
        let (store, store_origin) =
            choose(named(&arguments.store), given, &config, config.store.as_ref())?;
        let given = Origin::of(matches, "cluster", "--cluster", "INCUMBENT_CLUSTER");
        let (cluster, cluster_origin) =
            choose(named(&arguments.cluster), given, &config, config.cluster.as_ref())?;
        let hints = hints::settings(arguments, matches, &config)?;
        let session = Self {
            place: Place {
                hints,
                store_from: store_origin.elsewhere(),
                ..Place::new(store.as_deref(), cluster.as_deref())?
            },
            store_origin,
            cluster_origin,
            config,
            json: arguments.json,
            quiet: arguments.quiet,
            verbose: arguments.verbose,
        };
        if session.verbose > 1 {
            log::start()?;
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

/// What was given, or else what the file says.
fn choose(
    given: Option<&str>,
    origin: Origin,
    config: &Config,
    entry: Option<&Entry<String>>,
) -> Outcome<(Option<String>, Origin)> {
    refuse_nothing(given, &origin)?;
    let given = given.map(|text| (text.to_owned(), origin));
    let filed = || entry.map(|entry| (entry.value.clone(), Origin::line(config, entry)));
    Ok(match given.or_else(filed) {
        Some((text, origin)) => (Some(text), origin),
        None => (None, Origin::Default),
    })
}

/// Nothing is mostly a variable in a script that isn't set. Were it to mean the default, every
/// machine would lead on a file of its own.
fn refuse_nothing(given: Option<&str>, origin: &Origin) -> Outcome {
    if given.is_none_or(|text| !text.trim().is_empty()) {
        return Ok(());
    }
    let remedy = match origin {
        Origin::Variable(name) => format!("set it, or remove it with `unset {name}`"),
        Origin::Flag(_) | Origin::File(..) | Origin::Default => {
            "name one, or leave the flag out".to_owned()
        }
    };
    Err(Failure::usage(format!(
        "{origin} is empty; probably a variable is not set: {remedy} if the default \
         is meant"
    )))
}
