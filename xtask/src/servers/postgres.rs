//! PostgreSQL, from the distribution's packages.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Server, install};

pub(super) const SERVER: Server =
    Server { name: "postgres", variable: "INCUMBENT_TEST_POSTGRES", start };

fn start() -> Result<Running> {
    let programs = match programs() {
        Some(programs) => programs,
        None => {
            install::apt(&["postgresql"]).context("PostgreSQL")?;
            programs().context("PostgreSQL was installed, and its programs can't be found")?
        }
    };
    let place = Place::new("postgres", "postgres")?;
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
    debian.or_else(|| {
        let path = std::env::var_os("PATH")?;
        let both = |directory: &PathBuf| {
            directory.join("initdb").is_file() && directory.join("postgres").is_file()
        };
        std::env::split_paths(&path).find(both)
    })
}
