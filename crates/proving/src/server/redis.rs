//! Redis.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;

use super::{Recipe, Server, Site, program};

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_REDIS";

/// The URL of the server that the environment names, or of one that all tests of this process share.
#[must_use]
pub fn shared() -> String {
    static ONE: OnceLock<Server> = OnceLock::new();
    super::shared(VARIABLE, &ONE, || start(&[]), url)
}

/// Starts one with these settings, as on its command line.
#[must_use]
pub fn start(settings: &[&str]) -> Server {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let serve = move |site: &Site| {
        let mut command = site.command(&program::required("redis-server", "redis-server"));
        command.args(["--bind", "127.0.0.1", "--port", &site.port().to_string()]);
        command.args(["--save", "", "--appendonly", "yes", "--daemonize", "no"]);
        command.arg("--dir").arg(site.path()).args(&settings);
        command
    };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    Server::new(Site::new("redis"), Recipe { serve: Box::new(serve), ready, kill, end })
}

/// Its URL.
#[must_use]
pub fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

/// It answers before it has read its data, and is ready only when it has.
fn ready(site: &Site) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port()))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 64];
        let count = stream.read(&mut answer)?;
        Ok(count > 0 && !answer.starts_with(b"-LOADING"))
    };
    ask().unwrap_or(false)
}
