//! Private servers: a temporary directory, a free port of the loopback interface, and processes that
//! are ended with whoever started them, however that ends.

pub mod azurite;
pub mod chromedriver;
pub mod etcd;
pub mod kubernetes;
pub mod mariadb;
pub mod moto;
pub mod nats;
pub mod pgbouncer;
pub mod postgres;
mod program;
pub mod redis;
mod site;
pub mod zookeeper;

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub use program::find;
use site::Site;
pub use site::free_port;

/// How long a server may take until it answers. They take a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long its processes may take to end.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How a kind of server is run.
struct Recipe {
    /// The command that starts it, and starts it again on what it has kept.
    serve: Box<dyn Fn(&Site) -> Command + Send + Sync>,
    /// Whether it answers.
    ready: fn(&Site) -> bool,
    /// The hardest way to end it after which it still has what it acknowledged.
    kill: Signal,
    /// How it ends when nobody needs what it has.
    end: Signal,
}

/// A private server. Dropping it ends it and removes its data.
pub struct Server {
    site: Site,
    recipe: Recipe,
    process: Mutex<Option<Running>>,
}

/// The process, and another that ends it when this one is gone: what is static is never dropped, and
/// a test may be killed.
struct Running {
    server: Child,
    watchdog: Child,
}

impl Server {
    /// Starts it, and waits until it answers.
    fn new(site: Site, recipe: Recipe) -> Self {
        let server = Self::unstarted(site, recipe);
        server.resume();
        server
    }

    fn unstarted(site: Site, recipe: Recipe) -> Self {
        Self { site, recipe, process: Mutex::new(None) }
    }

    /// The directory of its data.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.site.path()
    }

    /// What it has printed.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.site.log()
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.site.port()
    }

    /// All processes that are parts of it.
    #[must_use]
    pub fn processes(&self) -> Vec<Pid> {
        self.site.processes()
    }

    /// Starts it with what it had, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it doesn't.
    pub fn resume(&self) {
        self.begin();
        self.wait();
    }

    /// Starts it with what it had.
    ///
    /// # Panics
    ///
    /// If that can't be done.
    pub fn begin(&self) {
        let log = File::options().create(true).append(true).open(self.site.log());
        let log = log.expect("a log");
        let mut command = (self.recipe.serve)(&self.site);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        // Ctrl-C is for whoever started it.
        let server = command.process_group(0).spawn();
        let server = server.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut watchdog = Command::new("sh");
        let end = self.recipe.end.as_raw().to_string();
        // Its input ends with this process.
        watchdog.args(["-c", "read line; kill -$2 $0 && sleep 1; kill -9 $0; rm -rf \"$1\""]);
        watchdog.arg(server.id().to_string()).arg(self.site.path()).arg(end);
        watchdog.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let watchdog = watchdog.process_group(0).spawn().expect("a watchdog");
        *self.running() = Some(Running { server, watchdog });
    }

    /// Waits until it answers.
    ///
    /// # Panics
    ///
    /// If it doesn't.
    pub fn wait(&self) {
        let answered = within(PATIENCE, || {
            let ended = self.running().as_mut().is_none_or(|it| !is_running(&mut it.server));
            assert!(!ended, "the private server ended at once:\n{}", self.site.last_words());
            (self.recipe.ready)(&self.site)
        });
        assert!(answered, "the private server didn't start:\n{}", self.site.last_words());
    }

    /// Ends it in the hardest way after which it still has what it acknowledged, and waits until
    /// nothing of it runs.
    ///
    /// # Panics
    ///
    /// If something of it goes on.
    pub fn kill(&self) {
        let kill = self.recipe.kill;
        assert!(self.end(kill), "some of its processes didn't end: {:?}", self.site.processes());
    }

    fn end(&self, signal: Signal) -> bool {
        let Some(mut running) = self.running().take() else { return true };
        let _ = running.watchdog.kill();
        let _ = running.watchdog.wait();
        let _ = kill_process(Pid::from_child(&running.server), signal);
        if !within(LAST_WORDS, || !is_running(&mut running.server)) {
            let _ = running.server.kill();
        }
        let _ = running.server.wait();
        // The children of a killed server notice by themselves, and it can't start again before.
        within(LAST_WORDS, || self.site.processes().is_empty())
    }

    /// Stops all of its processes, or lets them go on.
    pub fn pause(&self, pause: bool) {
        let signal = if pause { Signal::STOP } else { Signal::CONT };
        for process in self.site.processes() {
            let _ = kill_process(process, signal);
        }
        if pause {
            // Threads stop one after another.
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pause(false);
        if !self.end(self.recipe.end) {
            for process in self.site.processes() {
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }
}

/// A kind of private server of a test's own, to which the test adds what it needs.
#[macro_export]
macro_rules! own_server {
    () => {
        /// A server of its own for a test that stops or changes it.
        pub struct Server($crate::Server);

        impl std::ops::Deref for Server {
            type Target = $crate::Server;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    };
}

/// A URL with one more parameter.
#[must_use]
pub fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{name}={value}")
}

/// The URL of the server that the environment names, or of one that all tests of this process share.
fn shared(
    variable: &str,
    one: &'static OnceLock<Server>,
    start: fn() -> Server,
    url: fn(&Server) -> String,
) -> String {
    std::env::var(variable).unwrap_or_else(|_| url(one.get_or_init(start)))
}

/// The directory `target` that this program was built into, wherever it is. What npm and pip bring
/// is kept there.
fn build_directory() -> PathBuf {
    let program = std::env::current_exe().expect("a program");
    let built = program.ancestors().find(|place| place.join("CACHEDIR.TAG").is_file());
    built.expect("cargo marks its build directory").to_owned()
}

fn is_running(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

/// Whether something comes true in this time.
fn within(span: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let mut left = span;
    loop {
        if holds() {
            return true;
        }
        let pause = Duration::from_millis(20);
        let Some(rest) = left.checked_sub(pause) else { return false };
        left = rest;
        std::thread::park_timeout(pause);
    }
}
