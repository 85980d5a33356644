//! A private Redis server, or the one that the environment names.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use redis::Value;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_REDIS";

/// The server that the environment names, or one for this test alone.
pub enum Place {
    Named(String),
    Own(Server),
}

impl Place {
    pub fn new() -> Self {
        std::env::var(VARIABLE).map_or_else(|_| Self::Own(Server::start(&[])), Self::Named)
    }

    /// Its URL with a prefix that no other test uses.
    pub fn url(&self) -> String {
        let base = match self {
            Self::Named(url) => url.clone(),
            Self::Own(server) => server.url(),
        };
        let joint = if base.contains('?') { '&' } else { '?' };
        format!("{base}{joint}prefix={}", super::fresh())
    }
}

/// A server of its own. Dropping it ends it and removes its data.
pub struct Server {
    directory: TempDir,
    pub port: u16,
    settings: Vec<String>,
    process: Mutex<Option<Running>>,
}

/// The process, and another that ends it when this one is gone, however that happens: a test may
/// be killed.
struct Running {
    server: Child,
    watchdog: Child,
}

impl Server {
    /// Starts one with these settings, as on its command line.
    pub fn start(settings: &[&str]) -> Self {
        let directory =
            tempfile::Builder::new().prefix("incumbent-redis").tempdir().expect("a directory");
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let server = Self { directory, port: free_port(), settings, process: Mutex::new(None) };
        server.resume();
        server
    }

    /// One that has every write on its disk before it answers.
    pub fn durable() -> Self {
        Self::start(&["--appendfsync", "always"])
    }

    /// Starts the process again after [`Server::kill`].
    pub fn resume(&self) {
        let log = std::fs::File::options().create(true).append(true).open(self.log());
        let server = Command::new(program("redis-server"))
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--save", "", "--appendonly", "yes", "--daemonize", "no"])
            .arg("--dir")
            .arg(self.path())
            .args(&self.settings)
            .stdin(Stdio::null())
            .stdout(log.expect("a log"))
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server starts");
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
            // It answers before it has read its data, and is ready only when it has.
            if self.try_command(&["PING"]).is_ok_and(
                |reply| !matches!(&reply, Value::ServerError(error) if error.code() == "LOADING"),
            ) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        panic!("the private server didn't start: {log}");
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("log")
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Kills it at once.
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

    /// Runs a command as an operator would.
    pub fn command(&self, words: &[&str]) -> Value {
        self.try_command(words).expect("an answer")
    }

    fn try_command(&self, words: &[&str]) -> redis::RedisResult<Value> {
        operator(&self.url(), words)
    }

    /// Breaks all connections but the operator's.
    pub fn cut(&self) {
        for kind in ["normal", "pubsub"] {
            self.command(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
        }
    }

    /// A number in the server's statistics.
    pub fn statistic(&self, section: &str, name: &str) -> u64 {
        let reply = self.command(&["INFO", section]);
        let text = match reply {
            Value::BulkString(bytes) => String::from_utf8(bytes).expect("text"),
            other => panic!("unexpected {other:?}"),
        };
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        let number = line.map(|line| digits(line.strip_prefix("calls=").unwrap_or(line)));
        number.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command on a connection of its own.
pub fn operator(url: &str, words: &[&str]) -> redis::RedisResult<Value> {
    let client = redis::Client::open(url)?;
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(60))?;
    let (first, rest) = words.split_first().expect("a command");
    let command = redis::cmd(first).arg(rest).get_packed_command();
    redis::ConnectionLike::req_packed_command(&mut connection, &command)
}

/// Somebody else might get it in between; then the server says so and the test fails.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|place| place.join(name)).find(|at| at.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "no {name} was found: install Redis (on Debian: apt-get install redis-server), or set \
             {VARIABLE} to the URL of a server that these tests may use"
        )
    })
}
