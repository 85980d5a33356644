//! MariaDB.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::Signal;

use super::{Recipe, Server, Site, program};

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_MYSQL";

/// The URL of the server that the environment names, or of one that all tests of this process share.
#[must_use]
pub fn shared() -> String {
    static ONE: OnceLock<Server> = OnceLock::new();
    super::shared(VARIABLE, &ONE, || start(&[]), |server| url(server, "root"))
}

/// Starts one with these options (`--name=value`) and the database `app`.
///
/// # Panics
///
/// If it doesn't start.
#[must_use]
pub fn start(settings: &[&str]) -> Server {
    let site = Site::new("mariadb");
    let mut install = site.command(&binary("mariadb-install-db"));
    usual(&mut install, &site);
    install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    site.prepare(&mut install);
    // A directory of the server's is a database.
    std::fs::create_dir(site.path().join("data/app")).expect("a database");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let serve = move |site: &Site| {
        let mut command = site.command(&binary("mariadbd"));
        usual(&mut command, site);
        command.args(["--bind-address=127.0.0.1", "--innodb-buffer-pool-size=32M"]);
        command.args(["--innodb-log-file-size=16M", &format!("--port={}", site.port())]);
        command.arg(format!("--socket={}", site.path().join("s.sock").display()));
        command.arg(format!("--pid-file={}", site.path().join("pid").display())).args(&settings);
        command
    };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    Server::new(site, Recipe { serve: Box::new(serve), ready: Site::listens, kill, end })
}

/// The URL of its database for this user.
#[must_use]
pub fn url(server: &Server, user: &str) -> String {
    format!("mysql://{user}@127.0.0.1:{}/app", server.port())
}

fn usual(command: &mut Command, site: &Site) {
    command.arg("--no-defaults").arg(format!("--datadir={}", site.path().join("data").display()));
    command.arg("--skip-name-resolve");
    // It refuses to run as root unless told to.
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
    // Two of them at once must not share their temporary tables.
    command.env("TMPDIR", site.path());
}

fn binary(name: &str) -> PathBuf {
    program::required(name, "mariadb-server")
}
