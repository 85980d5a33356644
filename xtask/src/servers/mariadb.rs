//! MariaDB, from the distribution's packages.

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Server, install};

pub(super) const SERVER: Server = Server {
    name: "mariadb",
    store: "stores/mysql",
    variable: "INCUMBENT_TEST_MYSQL",
    start,
    companions: &[],
};

fn start() -> Result<Running> {
    let program = install::ensure("mariadbd", "mariadb-server").context("MariaDB")?;
    let prepare = install::ensure("mariadb-install-db", "mariadb-server").context("MariaDB")?;
    let place = Place::new("mariadb", None)?;
    let data = place.path().join("data");
    let data_option = format!("--datadir={}", data.display());
    // It refuses to run as root unless it is told to.
    let user = rustix::process::geteuid().is_root().then_some("--user=root");
    let mut init = place.command(&prepare);
    init.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    place.prepare(init.args(user).arg("--skip-name-resolve").arg(&data_option))?;
    // A directory of the server's is a database.
    std::fs::create_dir(data.join("app"))?;
    let mut serve = place.command(&program);
    serve.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"]).args(user);
    serve.arg(data_option).arg(format!("--port={}", place.port));
    serve.arg(format!("--socket={}", place.path().join("socket").display()));
    serve.arg(format!("--pid-file={}", place.path().join("pid").display()));
    let url = format!("mysql://root@127.0.0.1:{}/app", place.port);
    place.start(&mut serve, Signal::KILL, url)
}
