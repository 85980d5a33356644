//! One private server: its directory, its port, its process.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::clock;
use crate::process::{self, Group};

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs. Dropping it ends it and removes its data.
pub(crate) struct Running {
    /// Where tests find it.
    pub(crate) url: String,
    group: Group,
    /// Which signal it takes for "at once, without order".
    signal: Signal,
    _directory: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group.end(self.signal);
    }
}

/// Where a server may keep its data, and the port that it shall listen on.
pub(crate) struct Place {
    directory: TempDir,
    pub(crate) port: u16,
    user: Option<&'static str>,
}

impl Place {
    /// A new directory and a free port. A tool that runs as root hands them over to `user`, for
    /// servers that refuse to run as root.
    pub(crate) fn new(name: &str, user: Option<&'static str>) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix(&format!("incumbent-{name}-")).tempdir()?;
        process::note_directory(directory.path());
        let user = user.filter(|_| rustix::process::geteuid().is_root());
        if let Some(user) = user {
            let status = Command::new("chown").arg(user).arg(directory.path()).status()?;
            if !status.success() {
                bail!("the directory can't be given to the user {user:?}");
            }
        }
        // Somebody else might get the port in between; then the server says so and fails.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        Ok(Self { directory, port, user })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A command that runs as the server's user, and dies with this tool however that ends.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(user) = self.user {
            command.arg(format!("--reuid={user}")).arg(format!("--regid={user}"));
            command.arg("--clear-groups");
        }
        command.arg("--pdeathsig=KILL").arg(program).current_dir(self.path());
        command
    }

    /// Runs a command of the set-up to its end.
    pub(crate) fn prepare(&self, command: &mut Command) -> Result<()> {
        let output = command.stdin(Stdio::null()).output().context("setpriv can't be run")?;
        if !output.status.success() {
            bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// Starts the server and waits until it takes connections.
    pub(crate) fn start(
        self,
        command: &mut Command,
        signal: Signal,
        url: String,
    ) -> Result<Running> {
        let log = self.log();
        let file = File::create(&log)?;
        let mut group = Group::spawn(command.stdout(file.try_clone()?).stderr(file))?;
        let started = clock::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            if let Some(status) = group.ended()? {
                bail!("it ended at once ({status}):\n{}", tail(&log));
            }
            if started.elapsed() > PATIENCE {
                bail!("it did not answer within {PATIENCE:?}:\n{}", tail(&log));
            }
            clock::pause(Duration::from_millis(50));
        }
        Ok(Running { url, group, signal, _directory: self.directory })
    }

    fn log(&self) -> PathBuf {
        self.path().join("log")
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(20)).map(|line| format!("  {line}\n")).collect()
}
