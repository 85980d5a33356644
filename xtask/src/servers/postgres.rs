//! PostgreSQL, from the distribution's packages.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Companion, Server, install};

pub(super) const SERVER: Server = Server {
    name: "postgres",
    store: "stores/postgres",
    variable: "INCUMBENT_TEST_POSTGRES",
    start,
    companions: &[Companion {
        program: "pgbouncer",
        package: "pgbouncer",
        variable: "INCUMBENT_REQUIRE_PGBOUNCER",
    }],
};

fn start() -> Result<Running> {
    let programs = match programs() {
        Some(programs) => programs,
        None => {
            install::apt(&["postgresql"]).context("PostgreSQL")?;
            programs().context("PostgreSQL was installed, and its programs can't be found")?
        }
    };
    let place = Place::new("postgres", Some("postgres"))?;
    let data = place.path().join("data");
    let mut init = place.command(&programs.join("initdb"));
    init.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust", "-N"]);
    init.args(["-E", "UTF8", "--locale=C"]);
    place.prepare(&mut init)?;
    let mut serve = place.command(&programs.join("postgres"));
    serve.arg("-D").arg(&data).arg("-p").arg(place.port.to_string());
    // Tests of several crates share it, and each opens connections of its own.
    serve.args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300", "-c"]);
    serve.arg(format!("unix_socket_directories={}", place.path().display()));
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", place.port);
    // QUIT ends it at once, and its children with it.
    place.start(&mut serve, Signal::QUIT, url)
}

/// Where `initdb` and `postgres` are: Debian keeps them off the path, one directory a version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, programs)| programs.join("initdb").is_file())
        .collect();
    found.sort();
    let debian = found.pop().map(|(_, programs)| programs);
    let here = || install::find("initdb").and_then(|it| it.parent().map(PathBuf::from));
    debian.or_else(here)
}
