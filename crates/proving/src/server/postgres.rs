//! PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::Signal;

use super::{Recipe, Server, Site, program};

/// It refuses to run as root, so then it runs as the user that its package made.
const USER: &str = "postgres";

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_POSTGRES";

/// The URL of the server that the environment names, or of one that all tests of this process share.
#[must_use]
pub fn shared() -> String {
    static ONE: OnceLock<Server> = OnceLock::new();
    super::shared(VARIABLE, &ONE, || start(&[]), |server| url(server, "postgres"))
}

/// Starts one with these settings (`name=value`).
#[must_use]
pub fn start(settings: &[&str]) -> Server {
    start_with(settings, |_| {})
}

/// Lets `prepare` change the data directory before the start.
pub fn start_with(settings: &[&str], prepare: impl FnOnce(&Path)) -> Server {
    let site = Site::new("postgres");
    own(site.path());
    let mut initdb = site.command_as(USER, &binary("initdb"));
    initdb.arg("-D").arg(site.path().join("data"));
    initdb.args(["-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"]);
    site.prepare(&mut initdb);
    prepare(&site.path().join("data"));
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let serve = move |site: &Site| {
        let mut command = site.command_as(USER, &binary("postgres"));
        command.arg("-D").arg(site.path().join("data")).arg("-p").arg(site.port().to_string());
        let sockets = format!("unix_socket_directories={}", site.path().display());
        let usual = ["listen_addresses=127.0.0.1", &sockets, "max_connections=60"];
        for setting in usual.into_iter().chain(settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command
    };
    let recipe = Recipe {
        serve: Box::new(serve),
        ready,
        kill: Signal::KILL,
        // Killed, it would leave shared memory behind.
        end: Signal::QUIT,
    };
    Server::new(site, recipe)
}

/// Its URL for this user.
#[must_use]
pub fn url(server: &Server, user: &str) -> String {
    format!("postgres://{user}@127.0.0.1:{}/postgres", server.port())
}

/// A program of PostgreSQL's.
fn binary(name: &str) -> PathBuf {
    program::required(name, "postgresql")
}

/// A command that runs a program of PostgreSQL's as the servers run.
#[must_use]
pub fn command(name: &str) -> Command {
    program::command_as(USER, &binary(name))
}

/// Gives a path to the user that runs the server.
///
/// # Panics
///
/// If that can't be done.
pub fn own(path: &Path) {
    if rustix::process::geteuid().is_root() {
        let done = Command::new("chown").arg("-R").arg("postgres:postgres").arg(path).status();
        assert!(done.is_ok_and(|status| status.success()), "chown failed");
    }
}

fn ready(site: &Site) -> bool {
    let mut ask = Command::new(binary("pg_isready"));
    ask.args(["-q", "-h", "127.0.0.1", "-p", &site.port().to_string()]);
    ask.status().is_ok_and(|status| status.success())
}
