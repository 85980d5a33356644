//! NATS with JetStream, from the distribution's packages.

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Server, install};

pub(super) const SERVER: Server = Server {
    name: "nats",
    store: "stores/nats",
    variable: "INCUMBENT_TEST_NATS",
    start,
    companions: &[],
};

fn start() -> Result<Running> {
    let program = install::ensure("nats-server", "nats-server").context("NATS")?;
    let place = Place::new("nats", None)?;
    let mut serve = place.command(&program);
    serve.args(["-a", "127.0.0.1", "-p", &place.port.to_string(), "-js", "-sd"]).arg(place.path());
    let url = format!("nats://127.0.0.1:{}", place.port);
    place.start(&mut serve, Signal::KILL, url)
}
