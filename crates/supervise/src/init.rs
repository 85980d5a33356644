//! The init of a PID namespace: it starts the command, reaps, and is what dies for all.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use crate::channel::Channel;
use crate::ending::{Ending, Status};
use crate::message::{Order, Report};
use crate::wake::Wake;
use crate::{isolate, launch, sweep};

/// Runs until the command has ended or the guardian is gone. What is left of the namespace then
/// is killed by the kernel.
pub(crate) fn run(command: Vec<OsString>) -> ExitCode {
    let Ok(guardian) = Channel::inherited() else {
        eprintln!("incumbent: this is started by `incumbent run` and by nobody else");
        return ExitCode::from(64);
    };
    match Init::prepare(guardian, command).and_then(|mut init| init.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

struct Init {
    guardian: Channel,
    wake: Wake,
    command: Vec<OsString>,
    stdin: Option<OwnedFd>,
    foreground: bool,
    running: Option<Pid>,
}

impl Init {
    fn prepare(guardian: Channel, command: Vec<OsString>) -> io::Result<Self> {
        // The guardian's end takes this process with it. If the guardian is gone already, that
        // shows as the end of its messages.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let _ = rustix::thread::set_name(c"incumbent-init");
        let wake = Wake::new()?;
        let Some((Order::Prepare(preparation), stdin)) = guardian.receive()? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        match isolate::furnish() {
            Ok(()) => guardian.send(&Report::Ready { last: 1 })?,
            Err(error) => {
                guardian.send(&Report::Failed(format!("/proc can't be mounted: {error}")))?;
                return Err(error);
            }
        }
        let foreground = preparation.foreground;
        Ok(Self { guardian, wake, command, stdin, foreground, running: None })
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let woken = self.wake.wait(None, &self.guardian, None)?;
            if woken.first {
                let Some((order, _)) = self.guardian.receive()? else { return Ok(()) };
                self.obey(order)?;
            }
            let mut ended = None;
            let running = self.running;
            sweep::reap(|pid, status| {
                if Some(pid) == running {
                    ended = Some(Status::of(status));
                }
            });
            if let Some(status) = ended {
                return self.guardian.send(&Report::Ended(Ending {
                    status,
                    overdue: false,
                    warned: false,
                }));
            }
        }
    }

    /// Whatever is started here dies with this process, so nothing needs to be tied to it.
    fn start(&self, variables: &[(String, String)], stdin: OwnedFd) -> io::Result<Pid> {
        if self.foreground {
            launch::spawn_tied(&self.command, variables, stdin, true)
        } else {
            launch::spawn(&self.command, variables, stdin)
        }
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Start { variables, .. } => {
                let Some(stdin) = self.stdin.take() else { return Ok(()) };
                match self.start(&variables, stdin) {
                    Ok(pid) => self.running = Some(pid),
                    Err(error) => {
                        let program = self.command.first().map_or(OsStr::new(""), |it| it);
                        let status = Status::Exited(launch::refusal(program, &error).into());
                        self.guardian.send(&Report::Ended(Ending {
                            status,
                            overdue: false,
                            warned: false,
                        }))?;
                    }
                }
            }
            Order::Signal(number) => {
                if let (Some(pid), Some(signal)) = (self.running, Signal::from_named_raw(number)) {
                    let _ = kill_process_group(pid, signal);
                }
            }
            // These are the guardian's own business.
            Order::Prepare(_)
            | Order::Deadline(_)
            | Order::Stop { .. }
            | Order::Kill
            | Order::Entrust(_)
            | Order::Release => {}
        }
        Ok(())
    }
}
