//! The last step before the command: a process that ties itself to its parent and becomes it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use rustix::process::{Pid, getpgrp, getppid, set_parent_process_death_signal};

/// Starts the command in a process group of its own, as a child of this process.
pub(crate) fn spawn(
    command: &[OsString],
    variables: &[(String, String)],
    stdin: OwnedFd,
) -> io::Result<Pid> {
    let (program, rest) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(rest).envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(stdin).process_group(0);
    // What is started has the mask of who starts it. No signal is lost meanwhile: those who call
    // this reap right after it.
    SigSet::all().thread_unblock()?;
    let child = command.spawn();
    SigSet::all().thread_block()?;
    pid(child?.id())
}

/// The same by way of a process that ties itself to this one first, and takes the terminal.
pub(crate) fn spawn_tied(
    command: &[OsString],
    variables: &[(String, String)],
    stdin: OwnedFd,
    foreground: bool,
) -> io::Result<Pid> {
    let mut launcher = own_program(crate::LAUNCH);
    launcher.arg(std::process::id().to_string());
    launcher.arg(if foreground { "foreground" } else { "background" });
    launcher.args(command).envs(variables.iter().map(|(name, value)| (name, value)));
    launcher.stdin(stdin).process_group(0);
    let child = launcher.spawn()?;
    pid(child.id())
}

/// This very program, even if its file was replaced meanwhile.
pub(crate) fn own_program(role: &str) -> Command {
    let mut program = Command::new("/proc/self/exe");
    program.arg0("incumbent").arg(role);
    program
}

pub(crate) fn pid(number: u32) -> io::Result<Pid> {
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other(format!("{number} is no process id")))
}

/// Becomes the command. It dies with its parent, as far as the kernel lets it: a program with
/// the set-user-id bit loses that tie.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let [parent, ground, program, rest @ ..] = arguments else {
        eprintln!("incumbent: this is started by `incumbent run` and by nobody else");
        return ExitCode::from(64);
    };
    let tied = set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let now = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if tied.is_err() || parent.to_str() != Some(&now.to_string()) {
        // The parent is gone, and with it whoever could hold the lease.
        return ExitCode::from(137);
    }
    if ground == "foreground" {
        take_terminal();
        ignore_suspension();
    }
    // The guardian shuts signals out, and what it starts would do so too.
    let _ = SigSet::all().thread_unblock();
    let error = Command::new(program).args(rest).exec();
    ExitCode::from(refusal(program, &error))
}

/// Says why a program can't be run, and gives the code that shells give that.
pub(crate) fn refusal(program: &OsStr, error: &io::Error) -> u8 {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let text = program.to_string_lossy();
    let next = if missing && text.contains(char::is_whitespace) {
        "It has a blank in it: write its arguments as words of their own, or use --shell"
    } else if missing {
        "Correct its path, or see that a directory of PATH has it and that its interpreter is there"
    } else {
        "Name a program that this user may run"
    };
    // What a terminal would obey, or not show, is escaped.
    let shown = text.escape_debug();
    eprintln!("incumbent: \"{shown}\" can't be run: {error}. {next}");
    if missing { 127 } else { 126 }
}

/// Makes this process group the one that the terminal talks to.
pub(crate) fn take_terminal() {
    // The terminal stops whoever takes it from the background and doesn't block this signal.
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    if stop.thread_block().is_ok() {
        let _ = rustix::termios::tcsetpgrp(io::stdin(), getpgrp());
        let _ = stop.thread_unblock();
    }
}

/// Ctrl-Z is not for the command: nobody whom the shell waits for would stop with it. To block the
/// signal would not do, for a shell opens itself to all signals where it starts something.
#[allow(unsafe_code, reason = "what may be done in a handler is not checked; there is none")]
fn ignore_suspension() {
    // SAFETY: no handler is installed, so no code can run at a moment when it must not.
    let _ = unsafe { signal(Signal::SIGTSTP, SigHandler::SigIgn) };
}

/// Whether the terminal at the standard input talks to this process group.
pub(crate) fn has_terminal() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Standard input for a process to which only this process speaks.
pub(crate) fn speaks_through(end: OwnedFd) -> Stdio {
    Stdio::from(end)
}
