//! NATS.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;

use super::{Recipe, Server, Site, program};

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_NATS";

/// The URL of the server that the environment names, or of one that all tests of this process share.
#[must_use]
pub fn shared() -> String {
    static ONE: OnceLock<Server> = OnceLock::new();
    super::shared(VARIABLE, &ONE, start, url)
}

/// Starts one with JetStream.
#[must_use]
pub fn start() -> Server {
    start_with("jetstream { store_dir: \"DIRECTORY\" }")
}

/// Starts one with this configuration, in which `DIRECTORY` stands for its own.
///
/// # Panics
///
/// If it doesn't start.
#[must_use]
pub fn start_with(configuration: &str) -> Server {
    let site = Site::new("nats");
    let text = configuration.replace("DIRECTORY", &site.path().display().to_string());
    std::fs::write(site.path().join("conf"), text).expect("a configuration");
    let serve = |site: &Site| {
        let mut command = site.command(&program::required("nats-server", "nats-server"));
        command.arg("-c").arg(site.path().join("conf"));
        command.args(["-a", "127.0.0.1", "-p", &site.port().to_string()]);
        command
    };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    Server::new(site, Recipe { serve: Box::new(serve), ready, kill, end })
}

/// Its URL.
#[must_use]
pub fn url(server: &Server) -> String {
    format!("nats://127.0.0.1:{}", server.port())
}

/// It speaks first.
fn ready(site: &Site) -> bool {
    let greeted = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port()))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        Ok(stream.read(&mut [0; 16])? > 0)
    };
    greeted().unwrap_or(false)
}
