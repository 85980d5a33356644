//! A private etcd, or the one that the environment names.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::http;

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_ETCD";

/// The server that the tests of a file share, and a prefix of their own in it.
pub fn shared() -> String {
    match std::env::var(VARIABLE) {
        Ok(url) => format!("{}{}", base(&url), super::fresh()),
        Err(_) => one().fresh_url(),
    }
}

/// The port of the server that the tests share.
pub fn shared_port() -> u16 {
    match std::env::var(VARIABLE) {
        Ok(url) => {
            let hosts = base(&url).rsplit('/').next().unwrap_or_default();
            let port = hosts.split(',').next().and_then(|host| host.rsplit_once(':'));
            port.and_then(|(_, port)| port.parse().ok()).unwrap_or(2379)
        }
        Err(_) => one().port,
    }
}

/// A URL without its prefix.
fn base(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find(['/', '?']).map_or(url, |end| &url[..start + end])
}

/// A server that all tests of this process share.
fn one() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// A server of its own for a test that stops or kills it.
pub struct Server {
    pub port: u16,
    directory: TempDir,
    arguments: Vec<String>,
    process: Mutex<Option<Running>>,
}

/// The process, and another that ends it when this one is gone, however that happens: what is
/// static is never dropped, and a test may be killed.
struct Running {
    server: Child,
    watchdog: Child,
}

impl Server {
    /// Starts one with these arguments besides the usual, and waits until it works.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_as("http", arguments)
    }

    /// The same for clients that come with this scheme.
    pub fn start_as(scheme: &str, arguments: &[&str]) -> Self {
        let peer = free_port();
        let cluster = format!("default=http://127.0.0.1:{peer}");
        let server = Self::new(scheme, "default", peer, &cluster, arguments);
        server.resume();
        server
    }

    /// Starts three that form a cluster.
    pub fn three() -> [Self; 3] {
        let peers = [free_port(), free_port(), free_port()];
        let members = peers.iter().enumerate();
        let cluster: Vec<_> =
            members.map(|(n, peer)| format!("m{n}=http://127.0.0.1:{peer}")).collect();
        let cluster = cluster.join(",");
        let servers =
            [0, 1, 2].map(|n| Self::new("http", &format!("m{n}"), peers[n], &cluster, &[]));
        servers.iter().for_each(Self::begin);
        servers.iter().for_each(Self::wait);
        servers
    }

    fn new(scheme: &str, name: &str, peer: u16, cluster: &str, arguments: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("incumbent-etcd").tempdir();
        let (directory, port) = (directory.expect("a directory"), free_port());
        let (client, peer) =
            (format!("{scheme}://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        // Whoever looks from outside speaks plain HTTP, however clients come.
        let usual = [
            ("--name", name),
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", cluster),
            ("--logger", "zap"),
        ];
        let usual = usual.into_iter().flat_map(|(name, value)| [name, value]);
        let arguments = usual.chain(arguments.iter().copied()).map(str::to_owned).collect();
        Self { port, directory, arguments, process: Mutex::new(None) }
    }

    /// Starts the process, again or for the first time, and waits until it works.
    pub fn resume(&self) {
        self.begin();
        self.wait();
    }

    /// Starts the process.
    pub fn begin(&self) {
        let log = std::fs::File::options().create(true).append(true).open(self.log());
        let mut command = Command::new(binary());
        command.arg("--data-dir").arg(self.directory.path().join("data")).args(&self.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("a log"));
        let server = command.spawn().expect("etcd starts");
        // Its input ends with this process.
        let watchdog = Command::new("sh")
            .args(["-c", "read line; kill -KILL $0 && sleep 1; rm -rf \"$1\""])
            .arg(server.id().to_string())
            .arg(self.directory.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let watchdog = watchdog.expect("a watchdog");
        *self.process.lock().expect("a lock") = Some(Running { server, watchdog });
    }

    fn wait(&self) {
        for _ in 0..600 {
            if self.is_healthy() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        panic!("the private etcd didn't start: {log}");
    }

    /// Whether it has a leader and takes writes. One that wants TLS is asked for less.
    fn is_healthy(&self) -> bool {
        if self.arguments.iter().any(|argument| argument.starts_with("https://")) {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            return log.contains("serving client traffic securely");
        }
        http::get(self.port, "/health").is_some_and(|body| body.contains("\"health\":\"true\""))
    }

    /// Whether it leads its cluster.
    pub fn leads(&self) -> bool {
        http::metric(self.port, "etcd_server_is_leader") == 1
    }

    pub fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    pub fn path(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Its URL with a prefix that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("etcd://127.0.0.1:{}{}", self.port, super::fresh())
    }

    /// Kills it at once, as a loss of power of the process would.
    pub fn kill(&self) {
        let Some(mut running) = self.process.lock().expect("a lock").take() else { return };
        running.watchdog.kill().expect("a kill");
        running.watchdog.wait().expect("its end");
        running.server.kill().expect("a kill");
        running.server.wait().expect("its end");
    }

    /// Stops the process, or lets it go on.
    pub fn pause(&self, pause: bool) {
        let signal = if pause { Signal::STOP } else { Signal::CONT };
        if let Some(running) = &*self.process.lock().expect("a lock") {
            kill_process(Pid::from_child(&running.server), signal).expect("a signal");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn binary() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|place| place.join("etcd"));
    found.into_iter().find(|path| path.is_file()).unwrap_or_else(|| {
        panic!(
            "no etcd was found: install it (on Debian: apt-get install etcd-server), or set \
             {VARIABLE} to the URL of one that these tests may use. Tests that stop or kill a \
             server need the program in any case"
        )
    })
}

pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
