//! What a guardian guards.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::channel::Channel;
use crate::ending::Status;
use crate::message::{Order, Preparation, Report};
use crate::{isolate, launch, sweep};

/// The command, or the namespace in which it runs.
pub(crate) struct Body {
    kind: Kind,
    /// How the command ended, once that is known.
    status: Option<Status>,
}

enum Kind {
    Plain(Plain),
    Isolated { init: Pid, channel: Channel, _mounts: Option<File> },
}

struct Plain {
    command: Vec<OsString>,
    stdin: Option<OwnedFd>,
    foreground: bool,
    running: Option<Pid>,
}

impl Body {
    /// Everything but the command itself.
    pub(crate) fn prepare(
        preparation: &Preparation,
        command: Vec<OsString>,
        stdin: OwnedFd,
    ) -> io::Result<Self> {
        let kind = if preparation.isolate {
            isolated(preparation, &command, &stdin)?
        } else {
            let foreground = preparation.foreground;
            Kind::Plain(Plain { command, stdin: Some(stdin), foreground, running: None })
        };
        Ok(Self { kind, status: None })
    }

    /// The process that ends last, with nothing below it.
    pub(crate) fn last(&self) -> Pid {
        match &self.kind {
            Kind::Plain(_) => rustix::process::getpid(),
            Kind::Isolated { init, .. } => *init,
        }
    }

    /// Whether nothing but a mark tells that all was swept.
    pub(crate) fn needs_mark(&self) -> bool {
        matches!(self.kind, Kind::Plain(_))
    }

    /// Where more may be heard.
    pub(crate) fn channel(&self) -> Option<&Channel> {
        match &self.kind {
            Kind::Plain(_) => None,
            Kind::Isolated { channel, .. } => Some(channel),
        }
    }

    /// Starts the command, once.
    pub(crate) fn start(&mut self, variables: Vec<(String, String)>, deadline: u64) {
        let started = match &mut self.kind {
            Kind::Plain(plain) => plain.start(&variables),
            Kind::Isolated { channel, .. } => channel.send(&Order::Start { variables, deadline }),
        };
        if let Err(error) = started {
            self.status = Some(Status::Unstarted(error.to_string()));
        }
    }

    /// Sends the command's process group a signal.
    pub(crate) fn signal(&self, number: i32) {
        match &self.kind {
            Kind::Plain(plain) => {
                if let (Some(pid), Some(signal)) = (plain.running, Signal::from_named_raw(number)) {
                    let _ = kill_process_group(pid, signal);
                }
            }
            Kind::Isolated { channel, .. } => {
                let _ = channel.send(&Order::Signal(number));
            }
        }
    }

    /// Takes in what the init says.
    pub(crate) fn listen(&mut self) {
        let Kind::Isolated { channel, .. } = &self.kind else { return };
        match channel.receive::<Report>() {
            Ok(Some((Report::Ended(ending), _))) => self.status = Some(ending.status),
            Ok(Some(_)) => {}
            // It can't be heard any more, so it is of no use any more.
            Ok(None) | Err(_) => {
                self.status.get_or_insert(Status::KILLED);
            }
        }
    }

    /// How the command ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<Status> {
        let (main, init) = match &self.kind {
            Kind::Plain(plain) => (plain.running, None),
            Kind::Isolated { init, .. } => (None, Some(*init)),
        };
        let status = &mut self.status;
        let mut dead = false;
        sweep::reap(|pid, reaped| {
            if Some(pid) == main {
                status.get_or_insert(Status::of(reaped));
            }
            dead |= Some(pid) == init;
        });
        if dead {
            // It may have said how the command ended just before.
            self.listen();
        }
        if let (true, Kind::Plain(plain)) = (self.status.is_some(), &mut self.kind) {
            plain.running = None;
        }
        self.status.clone()
    }

    /// Kills all, waits until nothing is left, and says how the command ended.
    pub(crate) fn end(&mut self) -> Option<Status> {
        let main = match &self.kind {
            Kind::Plain(plain) => plain.running,
            Kind::Isolated { .. } => None,
        };
        if let Some(pid) = main {
            // Not reaped yet, so the group is still its own. All of it dies at one blow.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let status = &mut self.status;
        sweep::sweep(|pid, reaped| {
            if Some(pid) == main {
                status.get_or_insert(Status::of(reaped));
            }
        });
        self.status.clone()
    }
}

impl Plain {
    fn start(&mut self, variables: &[(String, String)]) -> io::Result<()> {
        let Some(stdin) = self.stdin.take() else { return Ok(()) };
        let pid = launch::spawn_tied(&self.command, variables, stdin, self.foreground)?;
        self.running = Some(pid);
        Ok(())
    }
}

/// Starts the init of a PID namespace, and waits until it is ready.
fn isolated(preparation: &Preparation, command: &[OsString], stdin: &OwnedFd) -> io::Result<Kind> {
    isolate::enter()?;
    let (channel, end) = Channel::pair()?;
    let init = launch::own_program(crate::INIT)
        .args(command)
        .stdin(launch::speaks_through(end))
        .spawn()?;
    // What is started from now on is outside again; not all may, and nothing depends on it.
    let _ = isolate::leave();
    channel.send_with(&Order::Prepare(preparation.clone()), Some(stdin.as_fd()))?;
    match channel.receive::<Report>()? {
        Some((Report::Ready { .. }, _)) => {
            // Taking the mounts down takes the kernel milliseconds. As long as they are open here,
            // the init doesn't have to wait for that when it dies.
            let _mounts = File::open(format!("/proc/{}/ns/mnt", init.id())).ok();
            Ok(Kind::Isolated { init: launch::pid(init.id())?, channel, _mounts })
        }
        Some((Report::Failed(why), _)) => Err(io::Error::other(why)),
        Some(_) | None => Err(io::Error::other("the init of the PID namespace ended at once")),
    }
}
