//! etcd.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;

use super::{Recipe, Server, Site, free_port, program};

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_ETCD";

/// The URL of the server that the environment names, or of one that all tests of this process share.
#[must_use]
pub fn shared() -> String {
    static ONE: OnceLock<Server> = OnceLock::new();
    super::shared(VARIABLE, &ONE, || start(&[]), url)
}

/// Starts one with these arguments besides the usual.
#[must_use]
pub fn start(arguments: &[&str]) -> Server {
    start_as("http", arguments)
}

/// The same for clients that come with this scheme.
#[must_use]
pub fn start_as(scheme: &str, arguments: &[&str]) -> Server {
    let peer = free_port();
    let cluster = format!("default=http://127.0.0.1:{peer}");
    let server = member(scheme, "default", peer, &cluster, arguments);
    server.resume();
    server
}

/// Starts three that form a cluster.
#[must_use]
pub fn three() -> [Server; 3] {
    let members = ["m0", "m1", "m2"].map(|name| (name, free_port()));
    let cluster = members.map(|(name, peer)| format!("{name}=http://127.0.0.1:{peer}")).join(",");
    let servers = members.map(|(name, peer)| member("http", name, peer, &cluster, &[]));
    servers.iter().for_each(Server::begin);
    servers.iter().for_each(Server::wait);
    servers
}

/// Its URL.
#[must_use]
pub fn url(server: &Server) -> String {
    format!("etcd://127.0.0.1:{}", server.port())
}

fn member(scheme: &str, name: &str, peer: u16, cluster: &str, arguments: &[&str]) -> Server {
    let site = Site::new("etcd");
    let client = format!("{scheme}://127.0.0.1:{}", site.port());
    let peer = format!("http://127.0.0.1:{peer}");
    let usual = [
        ("--name", name),
        ("--data-dir", "data"),
        ("--listen-client-urls", &client),
        ("--advertise-client-urls", &client),
        ("--listen-peer-urls", &peer),
        ("--initial-advertise-peer-urls", &peer),
        ("--initial-cluster", cluster),
        ("--logger", "zap"),
    ];
    let usual = usual.into_iter().flat_map(|(name, value)| [name, value]);
    let arguments: Vec<String> =
        usual.chain(arguments.iter().copied()).map(str::to_owned).collect();
    let serve = move |site: &Site| {
        let mut command = site.command(&program::required("etcd", "etcd-server"));
        command.args(&arguments);
        command
    };
    // One that wants TLS is asked for less.
    let ready = if scheme == "https" { serves_securely } else { is_healthy };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    Server::unstarted(site, Recipe { serve: Box::new(serve), ready, kill, end })
}

fn serves_securely(site: &Site) -> bool {
    let log = std::fs::read_to_string(site.log()).unwrap_or_default();
    log.contains("serving client traffic securely")
}

/// Whether it has a leader and takes writes.
fn is_healthy(site: &Site) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port()))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET /health HTTP/1.0\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains("\"health\":\"true\""))
}
