//! `incumbent run --lease NAME -- CMD…`: runs a command while holding a lease.

mod candidate;
mod environment;
mod lost;
mod notify;
mod once;
mod round;
mod signals;
mod term;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use incumbent::Timing;
use incumbent_supervise::{Isolation, Plan};

use self::round::{Outlook, Round};
use self::signals::Signals;
use crate::exit::{Failure, Outcome};
use crate::session::Session;
use crate::span;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
The command runs in a process group of its own and gets INCUMBENT_LEASE, INCUMBENT_TERM (the
fence), INCUMBENT_NODE, INCUMBENT_CLUSTER, INCUMBENT_STORE (without a password) and INCUMBENT_SLOT.
Signals are passed on to it, and its exit code is passed through. Nothing of it is left when the
lease is freed.

Examples:
  incumbent run --lease scheduler -- ./scheduler --config app.toml
  incumbent run --lease backup --no-wait -- ./backup.sh         # exits with 75 if somebody runs it
  incumbent run --lease report --once-per 1h -- ./report.sh     # from cron on every node
  incumbent run --lease worker --slots 3 -- ./worker            # three of them, wherever
  incumbent run --lease import --shell -- 'zcat dump.gz | ./import'";

/// What to run, and how.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// The lease to hold
    #[arg(long, value_name = "NAME")]
    lease: String,
    /// How long others wait for this node if nothing proves its death
    #[arg(long, value_name = "SPAN", default_value = "15s", value_parser = span::parse)]
    ttl: Duration,
    /// What this node is called [default: the host's name and the process id]
    #[arg(long, value_name = "NAME", env = "INCUMBENT_NODE", hide_env_values = true)]
    node: Option<String>,
    /// Don't wait for the lease: exit with 75 if somebody else has it
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// Wait so long for the lease, then exit with 75
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    wait: Option<Duration>,
    /// How long the command may take to end when it is asked to
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span::parse)]
    grace: Duration,
    /// Run this by the shell when the lease was lost and the command has ended
    #[arg(long, value_name = "COMMAND")]
    on_lost: Option<OsString>,
    /// Contend again when the lease was lost, instead of exiting with 76
    #[arg(long)]
    restart: bool,
    /// Run it only if it didn't succeed, on any node, for this long (nine tenths of it)
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    once_per: Option<Duration>,
    /// Let so many run at once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000))]
    slots: Option<u16>,
    /// Hand the command to the shell, sh -c
    #[arg(long)]
    shell: bool,
    /// Give the command a PID namespace of its own; auto does that as root
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    #[arg(default_missing_value = "always", num_args = 0..=1, require_equals = true)]
    isolate: Isolate,
    /// Don't watch the processes of whom it waits for, and let nobody watch these
    #[arg(long)]
    no_witness: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// When the command gets a PID namespace of its own.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Isolate {
    /// As root, where it takes nothing from the command
    Auto,
    /// Always; fails where that can't be had
    Always,
    /// Never
    Never,
}

impl RunArguments {
    /// How the command is to be supervised.
    fn plan(&self) -> Plan {
        let timing = Timing::for_ttl(self.ttl);
        Plan {
            command: self.words(),
            isolation: match self.isolate {
                Isolate::Auto => Isolation::Auto,
                Isolate::Always => Isolation::Always,
                Isolate::Never => Isolation::Never,
            },
            warning: self.grace.min(self.ttl / 3),
            fuse: timing.margin / 2,
        }
    }

    fn words(&self) -> Vec<OsString> {
        if !self.shell {
            return self.command.clone();
        }
        let script = self.command.join(std::ffi::OsStr::new(" "));
        vec!["/bin/sh".into(), "-c".into(), script]
    }
}

/// Runs the command, once or as often as the lease is won.
pub(crate) fn run(session: &Session, arguments: &RunArguments) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(session, arguments))
}

async fn serve(session: &Session, arguments: &RunArguments) -> Outcome {
    if session.place.is_private() {
        return Err(Failure::usage(format!(
            "the store {} is known to this process alone, so it keeps nobody else out: name one \
             that others can reach",
            session.place.shown()
        )));
    }
    let mut signals = Signals::new()?;
    if std::process::id() == 1 {
        signals::reap_strangers()?;
    }
    loop {
        let mut round = Round { session, arguments, signals: &mut signals };
        match round.play().await? {
            Outlook::Over(code) => return code.map_or(Ok(()), |code| Err(Failure::silent(code))),
            Outlook::Again => session.remark("contending again"),
        }
    }
}
