//! Private servers for the tests. What they are and how they run is in `crates/proving`; here they
//! are installed, started and told to the tests.

pub(crate) mod install;

use std::io::Read;

use anyhow::{Context as _, Result, anyhow, bail};
use incumbent_proving::Server;
use incumbent_proving::server::{azurite, etcd, mariadb, moto, nats, postgres, redis, zookeeper};

use crate::step::{Context, Verdict};

/// A kind of server that tests want.
struct Kind {
    /// Its name on the command line.
    name: &'static str,
    /// The variable by which tests find it. One that is set already is left alone, and no server
    /// is started.
    variable: &'static str,
    /// Programs that it and its tests need, and the packages of the distribution that have them.
    programs: &'static [(&'static str, &'static str)],
    start: fn() -> Server,
    url: fn(&Server) -> String,
}

const ALL: &[Kind] = &[
    Kind {
        name: "postgres",
        variable: postgres::VARIABLE,
        programs: &[("postgres", "postgresql"), ("pgbouncer", "pgbouncer")],
        start: || postgres::start(&[]),
        url: |server| postgres::url(server, "postgres"),
    },
    Kind {
        name: "redis",
        variable: redis::VARIABLE,
        programs: &[("redis-server", "redis-server")],
        start: || redis::start(&[]),
        url: redis::url,
    },
    Kind {
        name: "mariadb",
        variable: mariadb::VARIABLE,
        programs: &[("mariadbd", "mariadb-server"), ("mariadb-install-db", "mariadb-server")],
        start: || mariadb::start(&[]),
        url: |server| mariadb::url(server, "root"),
    },
    Kind {
        name: "etcd",
        variable: etcd::VARIABLE,
        // By `ip` tests part the servers of a cluster.
        programs: &[("etcd", "etcd-server"), ("ip", "iproute2")],
        start: || etcd::start(&[]),
        url: etcd::url,
    },
    Kind {
        name: "nats",
        variable: nats::VARIABLE,
        programs: &[("nats-server", "nats-server")],
        start: nats::start,
        url: nats::url,
    },
    Kind {
        name: "azurite",
        variable: azurite::VARIABLE,
        programs: &[("node", "nodejs"), ("npm", "npm")],
        start: azurite::start,
        url: |server| azurite::url(server.port(), "incumbent"),
    },
    Kind {
        name: MOTO,
        variable: moto::VARIABLE,
        programs: &[("python3", "python3"), ("pip", "python3-pip")],
        start: moto::start,
        url: moto::url,
    },
];

/// By which tests look at the page, each with its own, and at metrics and alerts.
const TOOLS: &[(&str, &str)] =
    &[("chromium", "chromium"), ("chromedriver", "chromium-driver"), ("promtool", "prometheus")];

/// It is slow, and for `--full` alone.
const MOTO: &str = "moto";

/// Starts all servers, and tells the tests where they are. One that can't be had is a failure,
/// because the tests of its store would be missing.
pub(crate) fn start_all(context: &mut Context) -> Result<Verdict> {
    let mut missing = Vec::new();
    for (program, package) in TOOLS {
        if let Err(error) = install::ensure(program, package) {
            println!("{program}: {error:#}");
            missing.push(*program);
        }
    }
    for kind in ALL.iter().filter(|kind| context.full || kind.name != MOTO) {
        if let Ok(url) = std::env::var(kind.variable) {
            println!("{}: {url}, as {} says", kind.name, kind.variable);
            continue;
        }
        match kind.run() {
            Ok((server, url)) => {
                println!("{}: {url}", kind.name);
                context.variables.push((kind.variable.to_owned(), url));
                if kind.name == MOTO {
                    let pairs = moto::CREDENTIALS.map(|(name, it)| (name.into(), it.into()));
                    context.variables.extend(pairs);
                }
                context.servers.push(server);
            }
            Err(error) => {
                println!("{}: {error:#}", kind.name);
                missing.push(kind.name);
            }
        }
    }
    Ok(match missing.as_slice() {
        [] => Verdict::Passed,
        missing => Verdict::Failed(format!("could not be had: {}", missing.join(", "))),
    })
}

/// What the comparison with peers needs, as far as it can be had: whoever misses it is left out there.
pub(crate) fn install_for_peers() {
    let programs = [
        ("postgres", "postgresql"),
        ("redis-server", "redis-server"),
        ("etcd", "etcd-server"),
        ("java", "default-jre-headless"),
        ("javac", "default-jdk-headless"),
        ("mvn", "maven"),
        ("python3", "python3-venv"),
    ];
    for (program, package) in programs {
        if let Err(error) = install::ensure(program, package) {
            println!("{program}: {error:#}");
        }
    }
    if !std::path::Path::new(zookeeper::JAR).is_file()
        && let Err(error) = install::apt(&["zookeeper"])
    {
        println!("zookeeper: {error:#}");
    }
}

/// The client library of PostgreSQL, with what programs are built from: diesel needs it.
pub(crate) fn libpq() -> Result<()> {
    let asked = std::process::Command::new("pg_config").arg("--version").output();
    if asked.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    install::apt(&["libpq-dev"]).context("libpq-dev")
}

/// Starts one server for somebody who develops.
pub(crate) fn serve(name: &str) -> Result<bool> {
    let Some(kind) = ALL.iter().find(|kind| kind.name == name) else {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
        bail!("there is no server {name:?}; there are: {}", names.join(", "));
    };
    let (server, url) = kind.run()?;
    println!("export {}={url}", kind.variable);
    println!("# runs until the end of input, or Ctrl-C");
    std::io::stdin().read_to_end(&mut Vec::new()).context("standard input can't be read")?;
    drop(server);
    Ok(true)
}

impl Kind {
    /// Installs what is missing, and starts it.
    fn run(&self) -> Result<(Server, String)> {
        for (program, package) in self.programs {
            install::ensure(program, package).with_context(|| program.to_string())?;
        }
        let server = std::panic::catch_unwind(self.start);
        let server = server.map_err(|_| anyhow!("it doesn't start; see above"))?;
        let url = (self.url)(&server);
        Ok((server, url))
    }
}
