//! A private MariaDB server, or the one that the environment names.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Names a server and a database that are there already.
pub const VARIABLE: &str = "INCUMBENT_TEST_MYSQL";

/// The server that the tests of a file share, and tables of their own in it.
pub fn shared() -> String {
    let base = std::env::var(VARIABLE).unwrap_or_else(|_| one().url("root"));
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}prefix={}", super::fresh())
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
    /// Starts one with these options (`--name=value`) and the database `app`.
    pub fn start(settings: &[&str]) -> Self {
        let directory =
            tempfile::Builder::new().prefix("incumbent-my").tempdir().expect("a directory");
        let mut install = Command::new(binary("mariadb-install-db", &["mysql_install_db"]));
        install.arg("--no-defaults").arg(data_of(&directory)).args([
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ]);
        as_root(&mut install);
        // Two of them at once must not share their temporary tables.
        install.env("TMPDIR", directory.path());
        let made = install.stdin(Stdio::null()).output().expect("mariadb-install-db runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // A directory of the server's is a database.
        std::fs::create_dir(directory.path().join("data/app")).expect("a database");
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let server = Self { directory, port: free_port(), settings, process: Mutex::new(None) };
        server.resume();
        server
    }

    /// Starts the process again after [`Server::kill`].
    pub fn resume(&self) {
        let place = self.directory.path().display();
        let log = std::fs::File::options().create(true).append(true).open(self.log());
        let mut command = Command::new(binary("mariadbd", &["mysqld"]));
        command.arg("--no-defaults").arg(data_of(&self.directory)).args([
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=32M",
            "--innodb-log-file-size=16M",
        ]);
        command.arg(format!("--port={}", self.port)).arg(format!("--socket={place}/s.sock"));
        command.arg(format!("--pid-file={place}/pid")).args(&self.settings);
        as_root(&mut command);
        command.env("TMPDIR", self.directory.path());
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("a log"));
        let server = server.spawn().expect("mariadbd starts");
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
        for _ in 0..1200 {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        panic!("the private server didn't start: {log}");
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of its database for this user.
    pub fn url(&self, user: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{}/app", self.port)
    }

    /// The same with tables that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("{}?prefix={}", self.url("root"), super::fresh())
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

fn data_of(directory: &TempDir) -> String {
    format!("--datadir={}", directory.path().join("data").display())
}

/// It refuses to run as root unless told to.
fn as_root(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
}

/// The program under one of its names, wherever this system keeps it.
fn binary(name: &str, others: &[&str]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    // Administrators' programs aren't on everybody's path.
    places.extend(["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from));
    let names = || std::iter::once(&name).chain(others);
    let found = names()
        .find_map(|name| places.iter().map(|place| place.join(name)).find(|path| path.is_file()));
    found.unwrap_or_else(|| {
        panic!(
            "no {name} was found: install MariaDB (on Debian: apt-get install mariadb-server), or \
             set {VARIABLE} to the URL of a database that these tests may use"
        )
    })
}

pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
