//! ZooKeeper, for comparisons alone: incumbent has no store on it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use rustix::process::Signal;

use super::{Recipe, Server, Site, program};

/// What Debian's package brings.
pub const JAR: &str = "/usr/share/java/zookeeper.jar";

/// Starts one.
///
/// # Panics
///
/// If its directory can't be written to.
#[must_use]
pub fn start() -> Server {
    let site = Site::new("zookeeper");
    let data = site.path().join("data");
    // Clients of one machine are many here, and the server that tells of itself isn't needed.
    let configuration = format!(
        "tickTime=1000\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n\
         admin.enableServer=false\n4lw.commands.whitelist=ruok\n",
        data.display(),
        site.port()
    );
    std::fs::write(site.path().join("zoo.cfg"), configuration).expect("a file");
    let serve = |site: &Site| {
        let mut command = site.command(&program::required("java", "default-jre-headless"));
        command.args(["-Xmx256m", "-cp", JAR, "org.apache.zookeeper.server.ZooKeeperServerMain"]);
        command.arg("zoo.cfg");
        command
    };
    let (kill, end) = (Signal::KILL, Signal::KILL);
    Server::new(site, Recipe { serve: Box::new(serve), ready: is_ok, kill, end })
}

/// Its URL, as the programs under test take it.
#[must_use]
pub fn url(server: &Server) -> String {
    format!("zookeeper://127.0.0.1:{}", server.port())
}

fn is_ok(site: &Site) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port()))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"ruok")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer == "imok")
}
