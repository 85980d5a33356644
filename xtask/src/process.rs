//! Processes that this tool starts, each in a process group of its own, so that all of them can
//! be ended: at the end, when a step takes too long, and on Ctrl-C.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock;

/// What must not outlive this tool: process groups, and directories to remove.
static STARTED: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
static DIRECTORIES: Mutex<Vec<std::path::PathBuf>> = Mutex::new(Vec::new());

/// Ends all that was started when this tool is told to end.
pub(crate) fn end_all_on_signal() -> Result<()> {
    ctrlc::set_handler(|| {
        for group in locked(&STARTED).drain(..) {
            // QUIT first would be kinder, but nothing in here has anything to save.
            let _ = kill_process_group(group, Signal::KILL);
        }
        for directory in locked(&DIRECTORIES).drain(..) {
            let _ = std::fs::remove_dir_all(directory);
        }
        std::process::exit(130);
    })
    .context("no handler for Ctrl-C can be set")
}

/// A directory to remove on Ctrl-C too.
pub(crate) fn note_directory(path: &std::path::Path) {
    locked(&DIRECTORIES).push(path.to_owned());
}

/// A process in a group of its own, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Group {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("{program} can't be started"))?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        locked(&STARTED).extend(id);
        Ok(Self { child, id })
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Asks it to end with this signal, waits a little, and makes sure.
    pub(crate) fn end(&mut self, signal: Signal) {
        let Some(id) = self.id.take() else { return };
        let _ = kill_process_group(id, signal);
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            clock::pause(Duration::from_millis(50));
        }
        let _ = kill_process_group(id, Signal::KILL);
        let _ = self.child.wait();
        locked(&STARTED).retain(|other| *other != id);
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait()?;
        if let Some(id) = self.id.take() {
            // Whatever it left behind in its group has no business here any more.
            let _ = kill_process_group(id, Signal::KILL);
            locked(&STARTED).retain(|other| *other != id);
        }
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end(Signal::TERM);
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) success: bool,
    /// What to say about it if it wasn't a success.
    pub(crate) story: String,
}

/// Runs a command to its end, or to the end of patience; every line of its standard output is
/// shown and given to `line`.
pub(crate) fn run(
    command: &mut Command,
    patience: Duration,
    mut line: impl FnMut(&str),
) -> Result<Ran> {
    let mut group = Group::spawn(command.stdout(Stdio::piped()))?;
    let output = group.child.stdout.take();
    let watchdog = Watchdog::start(group.id, patience);
    if let Some(output) = output {
        for read in BufReader::new(output).split(b'\n') {
            let text = read.context("its output can't be read")?;
            let text = String::from_utf8_lossy(&text);
            println!("{text}");
            line(&text);
        }
    }
    let status = group.wait()?;
    let story = if watchdog.barked() {
        format!("took longer than {}", clock::show(patience))
    } else {
        status.to_string()
    };
    Ok(Ran { success: status.success() && !watchdog.barked(), story })
}

/// Ends a group that takes too long.
struct Watchdog {
    barked: Arc<AtomicBool>,
    _leash: std::sync::mpsc::Sender<()>,
}

impl Watchdog {
    fn start(group: Option<Pid>, patience: Duration) -> Self {
        let barked = Arc::new(AtomicBool::new(false));
        let (leash, released) = std::sync::mpsc::channel::<()>();
        let bark = Arc::clone(&barked);
        std::thread::spawn(move || {
            let gone = released.recv_timeout(patience);
            if gone == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                && let Some(group) = group
            {
                bark.store(true, Ordering::SeqCst);
                let _ = kill_process_group(group, Signal::KILL);
            }
        });
        Self { barked, _leash: leash }
    }

    fn barked(&self) -> bool {
        self.barked.load(Ordering::SeqCst)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
