//! Three servers, one on each machine.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::net::{Net, address};

/// What they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Nats,
    Etcd,
}

pub(crate) struct Servers {
    kind: Kind,
    processes: Vec<Child>,
    _directory: TempDir,
}

impl Servers {
    /// Starts three that form a cluster.
    pub(crate) fn start(kind: Kind, net: &Net) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let processes = (0..3).map(|machine| {
            let place = directory.path().join(machine.to_string());
            std::fs::create_dir(&place).unwrap();
            let log = File::create(place.join("log")).unwrap();
            let mut command = match kind {
                Kind::Nats => nats(net, machine),
                Kind::Etcd => etcd(net, machine),
            };
            command.current_dir(&place).stdin(Stdio::null()).stdout(log.try_clone().unwrap());
            command.stderr(log).spawn().unwrap()
        });
        let processes = processes.collect();
        Self { kind, processes, _directory: directory }
    }

    /// Which of them leads, once one does: the one that keeps the bucket of this name, or all.
    pub(crate) fn leader(&self, bucket: &str) -> usize {
        for _ in 0..1200 {
            // One that was cut off may not know yet that it leads no more.
            let leaders = (0..3).filter(|machine| self.leads(*machine, bucket));
            if let [leader] = leaders.collect::<Vec<_>>()[..] {
                return leader;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        panic!("{:?} has no leader", self.kind);
    }

    /// Whether this one believes that it leads.
    pub(crate) fn leads(&self, machine: usize, bucket: &str) -> bool {
        match self.kind {
            Kind::Nats => {
                let state = ask(machine, 8222, "/jsz?streams=true&accounts=true");
                let state: String = state.split_whitespace().collect();
                let name = format!("\"name\":\"KV_{bucket}\"");
                let stream = state.split_once(&name).map_or("", |(_, rest)| rest);
                let leader = stream.split_once("\"leader\":\"").map_or("", |(_, rest)| rest);
                leader.starts_with(&format!("s{machine}\""))
            }
            Kind::Etcd => ask(machine, 2379, "/metrics").contains("\netcd_server_is_leader 1"),
        }
    }

    /// Waits until all take part and would answer clients.
    pub(crate) fn wait(&self) {
        let path = match self.kind {
            Kind::Nats => (8222, "/healthz", "\"ok\""),
            Kind::Etcd => (2379, "/health", "\"true\""),
        };
        for _ in 0..1200 {
            if (0..3).all(|machine| ask(machine, path.0, path.1).contains(path.2)) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        panic!("{:?} didn't get well", self.kind);
    }

    /// A URL by which these machines are used.
    pub(crate) fn url(&self, machines: &[usize], bucket: &str) -> String {
        let list = |port: u16| {
            let hosts = machines.iter().map(|machine| format!("{}:{port}", address(*machine)));
            hosts.collect::<Vec<_>>().join(",")
        };
        match self.kind {
            Kind::Nats => format!("nats://{}?bucket={bucket}&replicas=3", list(4222)),
            Kind::Etcd => format!("etcd://{}/{bucket}", list(2379)),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn nats(net: &Net, machine: usize) -> Command {
    let own = address(machine);
    let routes: Vec<String> =
        (0..3).map(|other| format!("nats://{}:6222", address(other))).collect();
    let mut command = net.command(machine, &program("nats-server"));
    command.args(["-a", &own, "-p", "4222", "-m", "8222", "-js", "-sd", "data"]);
    command.args(["--server_name", &format!("s{machine}"), "--cluster_name", "three"]);
    command.args(["--cluster", &format!("nats://{own}:6222"), "--routes", &routes.join(",")]);
    command
}

fn etcd(net: &Net, machine: usize) -> Command {
    let own = address(machine);
    let (client, peer) = (format!("http://{own}:2379"), format!("http://{own}:2380"));
    let all: Vec<String> =
        (0..3).map(|other| format!("s{other}=http://{}:2380", address(other))).collect();
    let mut command = net.command(machine, &program("etcd"));
    command.args(["--name", &format!("s{machine}"), "--data-dir", "data"]);
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &all.join(",")]);
    command
}

/// Where a program is.
fn program(name: &str) -> String {
    let found = incumbent_proving::server::find(name);
    found.unwrap_or_else(|| panic!("no {name} was found: install it")).display().to_string()
}

/// What a machine answers over HTTP; nothing if it doesn't.
fn ask(machine: usize, port: u16, path: &str) -> String {
    let asked = || -> std::io::Result<String> {
        let target =
            format!("{}:{port}", address(machine)).parse().map_err(std::io::Error::other)?;
        let mut stream = TcpStream::connect_timeout(&target, Duration::from_millis(500))?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        write!(stream, "GET {path} HTTP/1.0\r\nConnection: close\r\n\r\n")?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    asked().unwrap_or_default()
}
