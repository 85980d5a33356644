use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use super::word::Word;
use crate::exit::{Failure, Outcome};
use crate::place::Place;

/// A node of the demo, seen from outside. Dropping it kills the process.
pub(crate) struct Process {
    /// The node's name.
    pub(crate) name: String,
    /// Its process id.
    pub(crate) pid: u32,
    /// How it is.
    pub(crate) condition: Condition,
    /// Whether it shall run no duties.
    pub(crate) drained: bool,
    /// Its present member id.
    pub(crate) member: Option<String>,
    child: Child,
    /// Its end is the sign for the node that the demo is gone.
    _stdin: Option<ChildStdin>,
}

/// How a process is, as far as the demo knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It hasn't joined yet.
    Starting,
    /// It is a member.
    Running,
    /// It was stopped by a signal and goes on when it is resumed.
    Paused,
    /// It was asked to leave in order.
    Stopping,
    /// It was killed.
    Killed,
    /// It has left in order.
    Left,
    /// It ended, and nobody had asked it to.
    Failed,
}

impl Condition {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Killed => "killed",
            Self::Left => "left",
            Self::Failed => "failed",
        }
    }

    /// Whether there is a process.
    pub(crate) fn is_there(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Paused | Self::Stopping => true,
            Self::Killed | Self::Left | Self::Failed => false,
        }
    }
}

/// What is heard from a process.
pub(crate) enum Heard {
    /// It said something.
    Word(Word),
    /// It won't say anything any more.
    End,
}

/// A process that is heard, by its place in the fleet.
pub(crate) type Line = (usize, Heard);

/// What all nodes of a demo have in common.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// Where they join.
    pub(crate) place: Place,
    /// Their ttl.
    pub(crate) ttl: Duration,
    /// The leases that they stand for.
    pub(crate) leases: Vec<String>,
}

impl Process {
    /// Starts this very program again as a node.
    pub(crate) fn start(
        recipe: &Recipe,
        name: &str,
        place: usize,
        heard: UnboundedSender<Line>,
    ) -> Outcome<Self> {
        let program = std::env::current_exe()?;
        let ttl = format!("{}ms", recipe.ttl.as_millis());
        let mut command = Command::new(&program);
        command.arg("demo-node").args(["--name", name]).args(["--ttl", &ttl]);
        command.args(["--parent", &std::process::id().to_string()]);
        for lease in &recipe.leases {
            command.args(["--lease", lease]);
        }
        // By the environment, which others can't read, for the URL may hold a password.
        command.env("INCUMBENT_STORE", &recipe.place.url);
        command.env("INCUMBENT_CLUSTER", &recipe.place.cluster);
        // A group of its own, so that Ctrl-C reaches the demo alone, which then ends in order.
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| {
            Failure::internal(format!("{} can't be started as a node: {error}", program.display()))
        })?;
        let pid = child.id().ok_or_else(|| Failure::internal(format!("{name} has no id")))?;
        if let Some(stdout) = child.stdout.take() {
            Handle::current().spawn(listen(stdout, place, heard));
        }
        let _stdin = child.stdin.take();
        let (name, condition) = (name.to_owned(), Condition::Starting);
        Ok(Self { name, pid, condition, drained: false, member: None, child, _stdin })
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Outcome {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // Not reaped yet, so the number can't have been given to somebody else.
        let there = self.child.id().is_some();
        match pid.filter(|_| there) {
            Some(pid) => rustix::process::kill_process(pid, signal).map_err(|error| {
                Failure::internal(format!("{} (pid {}): {error}", self.name, self.pid))
            }),
            None => Err(Failure::internal(format!("{} has ended already", self.name))),
        }
    }

    /// Waits for its end and says whether that was in order.
    pub(crate) async fn reap(&mut self) -> bool {
        self.child.wait().await.is_ok_and(|status| status.success())
    }

    /// Kills it, unless it has ended, and waits for that.
    pub(crate) async fn end(&mut self) {
        let _ = self.child.kill().await;
    }
}

async fn listen(stdout: ChildStdout, place: usize, heard: UnboundedSender<Line>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // A line that is cut off by the death of the process says nothing.
        if let Ok(word) = serde_json::from_str(&line) {
            let _ = heard.send((place, Heard::Word(word)));
        }
    }
    let _ = heard.send((place, Heard::End));
}
