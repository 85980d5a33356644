//! Private servers for the tests.
//!
//! Each listens on a free port of the loopback interface, keeps its data in a temporary
//! directory, and is ended by its process id: at the end, on Ctrl-C, and by the kernel should
//! this tool be killed. Another kind of server is one more file with one more [`Server`].

mod azurite;
mod etcd;
mod install;
mod instance;
mod mariadb;
mod moto;
mod nats;
mod postgres;
mod redis;

use std::io::Read;

use anyhow::{Context as _, Result, bail};

use crate::step::{Context, Verdict};

pub(crate) use instance::Running;

/// A kind of server that tests want.
pub(crate) struct Server {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// The crate whose tests want it; without that crate there is nothing to start it for.
    pub(crate) store: &'static str,
    /// The variable by which tests find it. One that is set already is left alone, and no server
    /// is started.
    pub(crate) variable: &'static str,
    /// Finds it or installs it, and starts it.
    pub(crate) start: fn() -> Result<Running>,
    /// What its tests start themselves beside it.
    pub(crate) companions: &'static [Companion],
}

/// A program that tests start themselves.
pub(crate) struct Companion {
    pub(crate) program: &'static str,
    /// The package of the distribution that has it.
    pub(crate) package: &'static str,
    /// Set, so that tests fail without it instead of going on.
    pub(crate) variable: &'static str,
}

const ALL: &[Server] = &[
    postgres::SERVER,
    redis::SERVER,
    mariadb::SERVER,
    etcd::SERVER,
    nats::SERVER,
    azurite::SERVER,
    moto::SERVER,
];

/// Those that can be done without: where they can't be had they are named, and no failure.
const OPTIONAL: &[&str] = &[nats::SERVER.name, azurite::SERVER.name, moto::SERVER.name];

/// Those that are slow, and started with `--full` alone.
const FULL: &[&str] = &[moto::SERVER.name];

/// Starts all servers, and tells the tests where they are. One that can't be had is a failure,
/// because the tests of its store would be missing, unless it is among the optional ones.
pub(crate) fn start_all(context: &mut Context) -> Result<Verdict> {
    let (mut missing, mut without) = (Vec::new(), Vec::new());
    // Tests that need one of them fail without it from here on.
    context.variables.push(("INCUMBENT_REQUIRE_SERVERS".to_owned(), "1".to_owned()));
    for server in ALL.iter().filter(|server| context.full || !FULL.contains(&server.name)) {
        if !context.root.join(server.store).join("Cargo.toml").is_file() {
            println!("{}: not needed, there is no {}", server.name, server.store);
            continue;
        }
        for companion in server.companions {
            context.variables.push((companion.variable.to_owned(), "1".to_owned()));
            if let Err(error) = install::ensure(companion.program, companion.package) {
                println!("{}: {error:#}", companion.program);
                missing.push(companion.program);
            }
        }
        if let Ok(url) = std::env::var(server.variable) {
            println!("{}: {url}, as {} says", server.name, server.variable);
            continue;
        }
        match (server.start)() {
            Ok(running) => {
                println!("{}: {}", server.name, running.url);
                context.variables.push((server.variable.to_owned(), running.url.clone()));
                if server.name == moto::SERVER.name {
                    let pairs = moto::CREDENTIALS.map(|(name, it)| (name.into(), it.into()));
                    context.variables.extend(pairs);
                }
                context.servers.push(running);
            }
            Err(error) => {
                println!("{}: {error:#}", server.name);
                let optional = OPTIONAL.contains(&server.name);
                if optional { &mut without } else { &mut missing }.push(server.name);
            }
        }
    }
    Ok(match (missing.as_slice(), without.as_slice()) {
        ([], []) => Verdict::Passed,
        ([], without) => Verdict::Skipped(format!("could not be had: {}", without.join(", "))),
        (missing, _) => Verdict::Failed(format!("could not be had: {}", missing.join(", "))),
    })
}

/// Starts one server for somebody who develops.
pub(crate) fn serve(name: &str) -> Result<bool> {
    let Some(server) = ALL.iter().find(|server| server.name == name) else {
        let names: Vec<&str> = ALL.iter().map(|server| server.name).collect();
        bail!("there is no server {name:?}; there are: {}", names.join(", "));
    };
    let running = (server.start)()?;
    println!("export {}={}", server.variable, running.url);
    println!("# runs until the end of input, or Ctrl-C");
    std::io::stdin().read_to_end(&mut Vec::new()).context("standard input can't be read")?;
    drop(running);
    Ok(true)
}
