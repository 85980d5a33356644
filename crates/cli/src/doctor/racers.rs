//! The candidates of a race: processes of `incumbent run`.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::part::Start;
use super::race::LEASE;
use crate::exit::{Failure, Outcome};
use crate::place::Place;

/// How long a candidate may take to end in order.
const FAREWELL: Duration = Duration::from_secs(20);

/// The candidates. Dropping them kills them.
pub(super) struct Racers {
    place: Place,
    ttl: Duration,
    /// Locked by whoever runs.
    lock: NamedTempFile,
    racers: BTreeMap<String, Racer>,
    started: usize,
    words: UnboundedReceiver<Word>,
    sender: UnboundedSender<Word>,
}

struct Racer {
    child: Child,
    /// Its end tells what runs that `doctor` is gone.
    _stdin: Option<ChildStdin>,
}

/// What a candidate says.
pub(super) enum Word {
    /// It runs.
    Start(Start),
    /// Something went wrong.
    Complaint(String),
}

impl Racers {
    /// Nobody yet.
    pub(super) fn new(place: Place, ttl: Duration) -> Outcome<Self> {
        let lock = NamedTempFile::with_prefix("incumbent-doctor-")?;
        let (sender, words) = mpsc::unbounded_channel();
        Ok(Self { place, ttl, lock, racers: BTreeMap::new(), started: 0, words, sender })
    }

    /// One more.
    pub(super) fn add(&mut self) -> Outcome {
        self.started += 1;
        let name = format!("racer-{}", self.started);
        let program = std::env::current_exe()?;
        let mut command = Command::new(&program);
        // Nothing of the user's own settings, but for the store.
        command.args(["run", "-q", "--config", "/dev/null", "--lease", LEASE, "--node", &name]);
        command.arg("--ttl").arg(format!("{}ms", self.ttl.as_millis()));
        command.arg("--").arg(&program).args(["doctor-part", "race"]).arg(self.lock.path());
        // By the environment, which others can't read, for the URL may hold a password.
        command.env("INCUMBENT_STORE", &self.place.url);
        command.env("INCUMBENT_CLUSTER", &self.place.cluster).env_remove("NOTIFY_SOCKET");
        // A group of its own, so that Ctrl-C reaches doctor alone, which then ends in order.
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            let handle = Handle::current();
            handle.spawn(hear(stdout, self.sender.clone(), |line| {
                serde_json::from_str(&line).ok().map(Word::Start)
            }));
            handle.spawn(hear(stderr, self.sender.clone(), |line| Some(Word::Complaint(line))));
        }
        let stdin = child.stdin.take();
        self.racers.insert(name, Racer { child, _stdin: stdin });
        Ok(())
    }

    /// What is said next.
    pub(super) async fn next(&mut self) -> Word {
        match self.words.recv().await {
            Some(word) => word,
            // There is a sender here, so this never comes.
            None => std::future::pending().await,
        }
    }

    /// Sends one of them a signal.
    pub(super) fn signal(&self, name: &str, signal: Signal) -> Outcome {
        let racer = self.racers.get(name);
        let id = racer.and_then(|racer| racer.child.id()).and_then(|id| i32::try_from(id).ok());
        let pid = id.and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::internal(format!("{name} has ended already")))?;
        rustix::process::kill_process(pid, signal).map_err(Failure::internal)
    }

    /// Waits for the end of one of them, who is about to end, and starts another in its place.
    pub(super) async fn replace(&mut self, name: &str) -> Outcome {
        if let Some(mut racer) = self.racers.remove(name) {
            let _ = tokio::time::timeout(FAREWELL, racer.child.wait()).await;
        }
        self.add()
    }

    /// Ends all of them: in order, if they let themselves be asked.
    pub(super) async fn end(mut self) {
        let names: Vec<String> = self.racers.keys().cloned().collect();
        for name in &names {
            let _ = self.signal(name, Signal::TERM);
        }
        for racer in self.racers.values_mut() {
            if tokio::time::timeout(FAREWELL, racer.child.wait()).await.is_err() {
                let _ = racer.child.kill().await;
            }
        }
    }
}

async fn hear(
    pipe: impl AsyncRead + Unpin,
    sender: UnboundedSender<Word>,
    understand: impl Fn(String) -> Option<Word>,
) {
    let mut lines = BufReader::new(pipe).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(word) = understand(line) {
            let _ = sender.send(word);
        }
    }
}
