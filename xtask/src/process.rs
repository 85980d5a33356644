//! Processes that this tool starts, each in a process group of its own, so that all of them can
//! be ended: at the end, when a step takes too long, and on Ctrl-C.

use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock;

/// The process groups that must not outlive this tool.
static STARTED: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Ends all that was started when this tool is told to end.
pub(crate) fn end_all_on_signal() -> Result<()> {
    ctrlc::set_handler(|| {
        for group in locked(&STARTED).drain(..) {
            // QUIT first would be kinder, but nothing in here has anything to save.
            let _ = kill_process_group(group, Signal::KILL);
        }
        std::process::exit(130);
    })
    .context("no handler for Ctrl-C can be set")
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

/// How long the output of a command that has ended may go on.
const LAST_WORDS: Duration = Duration::from_secs(10);

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
    let (reader, writer) = std::io::pipe()?;
    read(command.stdout(writer), reader, patience, |text| {
        println!("{text}");
        line(text);
    })
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) success: bool,
    /// What to say about it if it wasn't a success.
    pub(crate) story: String,
    pub(crate) output: String,
}

/// What becomes of the standard error of a command whose output is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errors {
    /// It is shown at once.
    Shown,
    /// It is collected with the rest.
    Collected,
}

/// Runs a command to its end, or to the end of patience, and collects what it prints.
pub(crate) fn collect(
    command: &mut Command,
    patience: Duration,
    errors: Errors,
) -> Result<Collected> {
    let (reader, writer) = std::io::pipe()?;
    if errors == Errors::Collected {
        command.stderr(writer.try_clone()?);
    }
    let mut output = String::new();
    let ran = read(command.stdout(writer), reader, patience, |text| {
        output.push_str(text);
        output.push('\n');
    })?;
    Ok(Collected { success: ran.success, story: ran.story, output })
}

/// Runs a command that writes to a pipe, and reads that.
fn read(
    command: &mut Command,
    reader: PipeReader,
    patience: Duration,
    mut line: impl FnMut(&str),
) -> Result<Ran> {
    let mut group = Group::spawn(command)?;
    // Otherwise this end of the pipe would stay open, and reading would never end.
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    let watchdog = Watchdog::start(group.id, patience);
    let (lines, read) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // An error ends the output as its end does.
        for text in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            if lines.send(text).is_err() {
                break;
            }
        }
    });
    let mut silence = None;
    loop {
        match read.recv_timeout(Duration::from_millis(100)) {
            Ok(text) => line(&String::from_utf8_lossy(&text)),
            Err(RecvTimeoutError::Disconnected) => break,
            // Something that it left behind may keep the pipe open for ever.
            Err(RecvTimeoutError::Timeout) if group.ended()?.is_some() => {
                if silence.get_or_insert_with(clock::now).elapsed() > LAST_WORDS {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
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
            if gone == Err(RecvTimeoutError::Timeout)
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
