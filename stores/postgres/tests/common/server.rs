//! A private PostgreSQL server, or the one that the environment names.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Names a server that is there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_POSTGRES";

/// The server that the tests of a file share, and a schema of their own in it.
pub fn shared() -> String {
    let base = std::env::var(VARIABLE).unwrap_or_else(|_| one().url("postgres"));
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}schema={}", super::fresh())
}

/// A server that all tests of this process share.
fn one() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[]))
}

/// A server of its own for a test that stops or kills it.
pub struct Server {
    directory: TempDir,
    port: u16,
    settings: Vec<String>,
    process: Mutex<Option<Running>>,
}

/// The process, and another that ends it when this one is gone, however that happens: what is
/// static is never dropped, and a test may be killed.
struct Running {
    server: Child,
    watchdog: Child,
}

impl Server {
    /// Starts one with these settings (`name=value`).
    pub fn start(settings: &[&str]) -> Self {
        Self::start_with(settings, |_| {})
    }

    /// Lets `prepare` change the data directory before the start.
    pub fn start_with(settings: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        let directory =
            tempfile::Builder::new().prefix("incumbent-pg").tempdir().expect("a directory");
        own(directory.path());
        let data = directory.path().join("data");
        let made = as_postgres(&binary("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"])
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb runs").success(), "initdb failed");
        prepare(&data);
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let server = Self { directory, port: free_port(), settings, process: Mutex::new(None) };
        server.resume();
        server
    }

    /// Starts the process again after [`Server::kill`].
    pub fn resume(&self) {
        let log = std::fs::File::options().create(true).append(true).open(self.log());
        let mut command = as_postgres(&binary("postgres"));
        command.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string());
        let sockets = format!("unix_socket_directories={}", self.directory.path().display());
        for setting in ["listen_addresses=127.0.0.1", &sockets, "max_connections=60"] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let server = command.stdout(Stdio::null()).stderr(log.expect("a log")).spawn();
        let server = server.expect("postgres starts");
        // Its input ends with this process.
        let watchdog = Command::new("sh")
            .args(["-c", "read line; kill -QUIT $0 && sleep 1; rm -rf \"$1\""])
            .arg(server.id().to_string())
            .arg(self.directory.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let watchdog = watchdog.expect("a watchdog");
        *self.process.lock().expect("a lock") = Some(Running { server, watchdog });
        for _ in 0..600 {
            let ready = Command::new(binary("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status();
            if ready.is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        panic!("the private server didn't start: {log}");
    }

    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL for this user.
    pub fn url(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/postgres", self.port)
    }

    /// Its URL with a schema that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("{}?schema={}", self.url("postgres"), super::fresh())
    }

    /// Kills it at once, as a loss of power of the process would.
    pub fn kill(&self) {
        self.end(Signal::KILL);
    }

    fn end(&self, signal: Signal) {
        let Some(mut running) = self.process.lock().expect("a lock").take() else { return };
        running.watchdog.kill().expect("a kill");
        running.watchdog.wait().expect("its end");
        let id = Pid::from_child(&running.server);
        kill_process(id, signal).expect("a signal");
        running.server.wait().expect("its end");
        // The children of a killed server notice by themselves, and it can't start again before.
        for _ in 0..400 {
            if self.processes().is_empty() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(25));
        }
        panic!("some processes of the server didn't end: {:?}", self.processes());
    }

    /// Stops every process of the server, or lets them go on.
    pub fn pause(&self, pause: bool) {
        let signal = if pause { Signal::STOP } else { Signal::CONT };
        for id in self.processes() {
            let _ = kill_process(id, signal);
        }
    }

    /// All processes of the server work in its data directory.
    fn processes(&self) -> Vec<Pid> {
        let data = self.data();
        let all = std::fs::read_dir("/proc").expect("a list of processes").flatten();
        let own = all.filter(|entry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place == data)
        });
        own.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pause(false);
        self.end(Signal::QUIT);
    }
}

/// The program, wherever this system keeps it.
pub fn binary(name: &str) -> PathBuf {
    let versioned = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<_> = versioned.map(|entry| entry.path().join("bin")).collect();
    places.sort();
    places.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path));
    let found = places.into_iter().map(|place| place.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "no {name} was found: install PostgreSQL (on Debian: apt-get install postgresql), or \
             set {VARIABLE} to the URL of a server that these tests may use"
        )
    })
}

/// PostgreSQL refuses to run as root, so then it runs as the user that its package made.
pub fn as_postgres(program: &Path) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    command.stdin(Stdio::null());
    command
}

/// Gives a path to the user that runs the server.
pub fn own(path: &Path) {
    if rustix::process::geteuid().is_root() {
        let done = Command::new("chown").arg("-R").arg("postgres:postgres").arg(path).status();
        assert!(done.expect("chown runs").success());
    }
}

pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
