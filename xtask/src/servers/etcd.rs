//! etcd, from the distribution's packages.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::instance::{Place, Running};
use super::{Server, install};

pub(super) const SERVER: Server = Server {
    name: "etcd",
    store: "stores/etcd",
    variable: "INCUMBENT_TEST_ETCD",
    start,
    companions: &[],
};

fn start() -> Result<Running> {
    let program = install::ensure("etcd", "etcd-server").context("etcd")?;
    let place = Place::new("etcd", None)?;
    let peers = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let clients = format!("http://127.0.0.1:{}", place.port);
    let peers = format!("http://127.0.0.1:{peers}");
    let mut serve = place.command(&program);
    serve.arg("--data-dir").arg(place.path().join("data"));
    serve.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    serve.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    serve.args(["--initial-cluster", &format!("default={peers}")]);
    let url = format!("etcd://127.0.0.1:{}", place.port);
    place.start(&mut serve, Signal::KILL, url)
}
