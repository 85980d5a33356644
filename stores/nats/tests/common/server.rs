//! A private NATS server, or the one that the environment names.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_NATS";

/// Makes it a failure that no server can be had.
pub const REQUIRED: &str = "INCUMBENT_REQUIRE_NATS";

/// The server that the environment names, or one for this test alone.
pub enum Place {
    Named(String),
    Own(Server),
}

impl Place {
    pub fn new() -> Option<Self> {
        match std::env::var(VARIABLE) {
            Ok(url) => Some(Self::Named(url)),
            Err(_) => Server::start().map(Self::Own),
        }
    }

    /// Its URL with a bucket that no other test uses.
    pub fn url(&self) -> String {
        let base = match self {
            Self::Named(url) => url.clone(),
            Self::Own(server) => server.url(),
        };
        let joint = if base.contains('?') { '&' } else { '?' };
        format!("{base}{joint}bucket={}", super::fresh())
    }
}

/// A server of its own. Dropping it ends it and removes its data.
pub struct Server {
    directory: TempDir,
    pub port: u16,
    process: Mutex<Option<Running>>,
}

/// The process, and another that ends it when this one is gone, however that happens: a test may
/// be killed.
struct Running {
    server: Child,
    watchdog: Child,
}

impl Server {
    /// Starts one with JetStream, or says why it can't be had.
    pub fn start() -> Option<Self> {
        Self::with("jetstream { store_dir: \"DIRECTORY\" }")
    }

    /// Starts one with this configuration.
    pub fn with(configuration: &str) -> Option<Self> {
        if program().is_none() {
            let said = format!(
                "no nats-server was found: install it (on Debian: apt-get install nats-server), \
                 or set {VARIABLE} to the URL of a server that these tests may use"
            );
            assert!(std::env::var_os(REQUIRED).is_none(), "{said}");
            eprintln!("NOT RUN: {said}");
            return None;
        }
        let directory =
            tempfile::Builder::new().prefix("incumbent-nats").tempdir().expect("a directory");
        let server = Self { directory, port: free_port(), process: Mutex::new(None) };
        let place = server.path().display().to_string();
        let text = configuration.replace("DIRECTORY", &place);
        std::fs::write(server.path().join("conf"), text).expect("a configuration");
        server.resume();
        Some(server)
    }

    /// Starts the process again after [`Server::kill`].
    pub fn resume(&self) {
        let log = std::fs::File::options().create(true).append(true).open(self.log());
        let log = log.expect("a log");
        let server = Command::new(program().expect("a server"))
            .arg("-c")
            .arg(self.path().join("conf"))
            .args(["-a", "127.0.0.1", "-p", &self.port.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("nats-server starts");
        // Its input ends with this process.
        let watchdog = Command::new("sh")
            .args(["-c", "read line; kill -KILL $0; rm -rf \"$1\""])
            .arg(server.id().to_string())
            .arg(self.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a watchdog");
        *self.process.lock().expect("a lock") = Some(Running { server, watchdog });
        for _ in 0..600 {
            if self.greets() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        panic!("the private server didn't start: {log}");
    }

    fn greets(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else {
            return false;
        };
        stream.read(&mut [0; 16]).is_ok_and(|count| count > 0)
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("log")
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its URL with a bucket that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("{}?bucket={}", self.url(), super::fresh())
    }

    /// Kills it at once.
    pub fn kill(&self) {
        let Some(mut running) = self.process.lock().expect("a lock").take() else { return };
        running.watchdog.kill().expect("a kill");
        running.watchdog.wait().expect("its end");
        running.server.kill().expect("a kill");
        running.server.wait().expect("its end");
    }

    /// Kills it and removes all that it kept.
    pub fn wipe(&self) {
        self.kill();
        let _ = std::fs::remove_dir_all(self.path().join("jetstream"));
    }

    /// Stops the process, or lets it go on.
    pub fn pause(&self, pause: bool) {
        let signal = if pause { Signal::STOP } else { Signal::CONT };
        if let Some(running) = &*self.process.lock().expect("a lock") {
            kill_process(Pid::from_child(&running.server), signal).expect("a signal");
            // Its threads stop one after another.
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Somebody else might get it in between; then the server says so and the test fails.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Debian keeps servers where not everybody looks.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/bin".into()]);
    places.map(|place| place.join("nats-server")).find(|at| at.is_file())
}
