//! A private Azurite, the emulator of Azure Blob Storage: a free port of the loopback interface, a
//! temporary directory, ended by its process id.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const PACKAGE: &str = "azurite@3.35.0";
const BUILT: &str = env!("CARGO_TARGET_TMPDIR");

pub struct Azurite {
    pub port: u16,
    program: PathBuf,
    directory: TempDir,
    child: Mutex<Option<Child>>,
}

impl Azurite {
    /// Starts one, or says that the test is not run. Fails if the environment says that it has to
    /// be run.
    pub fn start(test: &str) -> Option<Self> {
        let program = match program() {
            Ok(program) => program,
            Err(reason) => {
                assert!(
                    std::env::var_os("INCUMBENT_REQUIRE_AZURE").is_none(),
                    "{test} needs Azurite: {reason}"
                );
                println!("NOT RUN: {test}: Azurite can't be had: {reason}");
                return None;
            }
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let azurite = Self { port, program, directory, child: Mutex::new(None) };
        azurite.restart();
        Some(azurite)
    }

    /// A container of this server, which is made if need be.
    pub fn url(&self, container: &str) -> String {
        url(self.port, container)
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut child) = child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends it in order. Azurite writes its index every five seconds and when it ends, so it would
    /// lose acknowledged writes if it were killed, which the storage that it stands for doesn't.
    pub fn stop(&self) {
        self.signal(Signal::TERM);
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        for _ in 0..100 {
            match child.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => std::thread::park_timeout(Duration::from_millis(50)),
                _ => return,
            }
        }
        if let Some(mut child) = child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it anew on the same port with the same data.
    pub fn restart(&self) {
        // The kernel ends it should the test be killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig=KILL", "node"]).arg(&self.program);
        command.args(["--blobHost", "127.0.0.1", "--blobPort", &self.port.to_string(), "-l"]);
        command.arg(self.directory.path()).args(["--skipApiVersionCheck", "--silent"]);
        command.arg("--disableTelemetry").current_dir(self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let child = command.spawn().expect("Azurite starts");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        for _ in 0..600 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        panic!("Azurite did not answer");
    }

    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = &*child {
            kill_process(Pid::from_child(child), signal).expect("a signal");
        }
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A container of an emulator at this port.
pub fn url(port: u16, container: &str) -> String {
    format!("az://{container}/p?endpoint=http://127.0.0.1:{port}&use_emulator=true&create=yes")
}

/// The script to run with node, installed with npm below the build directory if need be.
fn program() -> Result<PathBuf, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            let below = Path::new(BUILT).parent().unwrap_or(Path::new(BUILT)).join("npm/azurite");
            let script = below.join("node_modules/azurite/dist/src/blob/main.js");
            if !script.is_file() {
                install(&below)?;
            }
            script.is_file().then_some(script).ok_or("npm installed something else".to_owned())
        })
        .clone()
}

fn install(below: &Path) -> Result<(), String> {
    std::fs::create_dir_all(below).map_err(|error| error.to_string())?;
    let mut command = Command::new("npm");
    command.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]);
    let output = command.arg(below).arg(PACKAGE).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("npm can't be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("npm failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
