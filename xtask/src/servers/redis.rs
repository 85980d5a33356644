//! Redis, from the distribution's packages.

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Server, install};

pub(super) const SERVER: Server = Server {
    name: "redis",
    store: "stores/redis",
    variable: "INCUMBENT_TEST_REDIS",
    start,
    companions: &[],
};

fn start() -> Result<Running> {
    let program = install::ensure("redis-server", "redis-server").context("Redis")?;
    let place = Place::new("redis", None)?;
    let mut serve = place.command(&program);
    serve.args(["--bind", "127.0.0.1", "--port", &place.port.to_string(), "--save", ""]);
    serve.args(["--appendonly", "yes", "--daemonize", "no", "--dir"]).arg(place.path());
    let url = format!("redis://127.0.0.1:{}", place.port);
    place.start(&mut serve, Signal::KILL, url)
}
