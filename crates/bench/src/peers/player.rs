//! A program under test, as the one that started it sees it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::clock;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

use super::build::Program;

/// What it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It is about to try for the first time.
    Begin,
    /// It has a lease.
    Led,
    /// It was asked whether it leads, and said yes.
    Believes,
    /// It has noticed that it doesn't lead any more.
    Lost,
}

/// One line: what, and when by CLOCK_BOOTTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) word: Word,
    pub(crate) at: u64,
}

/// What it is asked to do.
pub(crate) struct Task<'a> {
    pub(crate) url: &'a str,
    pub(crate) lease: &'a str,
    pub(crate) ttl: Duration,
    pub(crate) count: usize,
    /// Between two questions; zero where the answers aren't needed.
    pub(crate) ask: Duration,
}

/// A running program. Dropped, it is killed.
pub(crate) struct Player {
    child: Child,
    lines: Receiver<Line>,
}

impl Player {
    /// Starts one with this name.
    pub(crate) fn start(program: &Program, name: &str, task: &Task<'_>) -> Result<Self> {
        let mut command = program.command();
        command.args([task.url, name, task.lease, &task.ttl.as_millis().to_string()]);
        command.args([task.count.to_string(), task.ask.as_millis().to_string()]);
        command.env("BOOTTIME_AHEAD_NS", ahead().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let read = output.split(b'\n').map_while(Result::ok);
            for line in read.filter_map(|line| parse(&String::from_utf8_lossy(&line))) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines })
    }

    /// The same, once it has begun.
    pub(crate) fn begun(program: &Program, name: &str, task: &Task<'_>) -> Result<Self> {
        let player = Self::start(program, name, task)?;
        player.hear(Word::Begin, Duration::from_secs(60)).context("it doesn't begin")?;
        Ok(player)
    }

    /// When it told this, if it does so in time. Whatever else it tells before is passed over.
    pub(crate) fn hear(&self, word: Word, patience: Duration) -> Option<u64> {
        let end = clock::now().as_nanos() + patience.as_nanos() as u64;
        loop {
            let left = end.saturating_sub(clock::now().as_nanos());
            let line = self.lines.recv_timeout(Duration::from_nanos(left)).ok()?;
            if line.word == word {
                return Some(line.at);
            }
        }
    }

    /// Its next line, if one comes in time.
    pub(crate) fn line(&self, patience: Duration) -> Option<Line> {
        self.lines.recv_timeout(patience).ok()
    }

    /// All that it has told and nobody has read.
    pub(crate) fn told(&self) -> Vec<Line> {
        self.lines.try_iter().collect()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal; says when.
    pub(crate) fn signal(&self, signal: Signal) -> Result<u64> {
        let at = clock::now().as_nanos();
        kill_process(Pid::from_child(&self.child), signal).context("it has ended already")?;
        Ok(at)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC, for programs that can only read the latter.
fn ahead() -> i128 {
    let nanos = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let difference = nanos(ClockId::Boottime) - nanos(ClockId::Monotonic);
    // A machine that never slept has none but the time between the two reads.
    if difference < 1_000_000 { 0 } else { difference }
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let word = match words.next()? {
        "begin" => Word::Begin,
        "led" => Word::Led,
        "believes" => Word::Believes,
        "lost" => Word::Lost,
        _ => return None,
    };
    Some(Line { word, at: words.next()?.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_what_libraries_print_is_not() {
        assert_eq!(parse("led 12 job"), Some(Line { word: Word::Led, at: 12 }));
        assert_eq!(parse("begin 7"), Some(Line { word: Word::Begin, at: 7 }));
        for other in ["lost lease during heartbeat: a", "", "led", "leads 3 job"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
