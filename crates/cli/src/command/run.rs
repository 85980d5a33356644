//! `incumbent run --lease NAME -- CMD…`: runs a command while holding a lease.

mod candidate;
mod environment;
mod joining;
mod lost;
mod notify;
mod once;
mod round;
mod signals;
mod term;
mod watchdog;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use incumbent::Timing;
use incumbent_supervise::{Isolation, Plan};

use self::round::{Outlook, Round};
use self::signals::Signals;
use crate::config::Config;
use crate::exit::{Code, Failure, Outcome};
use crate::session::Session;
use crate::setting::Origin;
use crate::{setting, span};

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
The command runs in a process group of its own and gets INCUMBENT_LEASE, INCUMBENT_TERM (the
fence), INCUMBENT_NODE, INCUMBENT_CLUSTER, INCUMBENT_STORE (without a password) and INCUMBENT_SLOT.
Signals are passed on to it, and its exit code is passed through. Nothing of it is left when the
lease is freed.

Examples:
  incumbent run --lease scheduler -- ./scheduler --config app.toml
  incumbent run --lease backup --no-wait -- ./backup.sh    # exits with 75 if it is already running
  incumbent run --lease report --once-per 1h -- ./report.sh     # from cron on every node
  incumbent run --lease worker --slots 3 -- ./worker            # up to three, on any nodes
  incumbent run --lease import --shell -- 'zcat dump.gz | ./import'";

/// How long a command may take to end, unless somebody says otherwise.
const GRACE: Duration = Duration::from_secs(10);

/// Between two rounds, should the store fail in one.
const PAUSE: Duration = Duration::from_secs(1);

/// What to run, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArguments {
    /// The lease to hold
    #[arg(long, value_name = "NAME")]
    lease: String,
    /// How long others wait for this node if nothing proves its death [default: 15s] [env: INCUMBENT_TTL]
    #[arg(long, value_name = "SPAN", value_parser = span::ttl)]
    ttl: Option<Duration>,
    /// The name of this node [default: the host's name and the process id]
    #[arg(long, value_name = "NAME", env = "INCUMBENT_NODE", hide_env_values = true)]
    node: Option<String>,
    /// Don't wait for the lease: exit with 75 if somebody else has it, or with 69 if the store
    /// hasn't answered after 5 s
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// Wait for the lease for this long, then exit with 75, or with 69 if the store hasn't answered
    /// by then
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    wait: Option<Duration>,
    /// How long the command may take to end when it is asked to [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    grace: Option<Duration>,
    /// If no beat gets through, ask the command to end this long before its lease runs out
    /// [default: ttl/20]
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    last_grace: Option<Duration>,
    /// Kill the command and free the lease if the command is silent for this long: it has to send
    /// WATCHDOG=1 to NOTIFY_SOCKET, as with systemd
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    watchdog: Option<Duration>,
    /// Have the shell run this when the lease was lost and the command has ended
    #[arg(long, value_name = "COMMAND")]
    on_lost: Option<OsString>,
    /// Contend again after the lease was lost, instead of exiting with 76; wait for the store if
    /// necessary
    #[arg(long)]
    restart: bool,
    /// Run it only if it didn't succeed, on any node, for this long (nine tenths of it)
    #[arg(long, value_name = "SPAN", value_parser = span::parse)]
    once_per: Option<Duration>,
    /// Let up to this many run at once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000))]
    #[arg(conflicts_with = "once_per")]
    slots: Option<u16>,
    /// Hand the command to the shell, sh -c
    #[arg(long)]
    shell: bool,
    /// Give the command a PID namespace of its own; auto, the default, does that as root
    #[arg(long, value_name = "WHEN", value_enum)]
    #[arg(default_missing_value = "always", num_args = 0..=1, require_equals = true)]
    isolate: Option<Isolate>,
    /// Don't watch the processes of other holders, and don't let others watch these
    #[arg(long)]
    no_witness: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// When the command gets a PID namespace of its own.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Isolate {
    /// As root, where the command loses nothing by it
    Auto,
    /// Always; fails if that isn't possible
    Always,
    /// Never
    Never,
}

impl RunArguments {
    /// With what the environment and the configuration file say about the rest.
    fn settled(mut self, config: &Config) -> Outcome<Self> {
        let run = &config.run;
        self.ttl = Some(setting::ttl(self.ttl, config)?.value);
        // An empty variable counts as unset; an empty flag was refused.
        self.node = self.node.filter(|name| !name.is_empty());
        self.node = self.node.or_else(|| config.node.as_ref().map(|it| it.value.clone()));
        self.grace = self.grace.or(run.grace.as_ref().map(|it| it.value));
        let last = setting::last_grace(self.last_grace, self.ttl(), config)?;
        // Who wants to be quick about it is, in the end too.
        let chosen = last.origin != Origin::Default;
        self.last_grace = Some(if chosen { last.value } else { last.value.min(self.grace()) });
        let isolate = || Isolate::from_str(&run.isolate.as_ref()?.value, false).ok();
        self.isolate = self.isolate.or_else(isolate);
        let hook = || run.on_lost.as_ref().map(|it| OsString::from(&it.value));
        self.on_lost = self.on_lost.or_else(hook);
        self.no_witness |= run.witness.as_ref().is_some_and(|it| !it.value);
        Ok(self)
    }

    fn ttl(&self) -> Duration {
        self.ttl.unwrap_or(setting::TTL)
    }

    fn grace(&self) -> Duration {
        self.grace.unwrap_or(GRACE)
    }

    /// How the command is to be supervised.
    fn plan(&self) -> Plan {
        let timing = Timing::for_ttl(self.ttl());
        Plan {
            command: self.words(),
            isolation: match self.isolate {
                None | Some(Isolate::Auto) => Isolation::Auto,
                Some(Isolate::Always) => Isolation::Always,
                Some(Isolate::Never) => Isolation::Never,
            },
            warning: self.last_grace.unwrap_or(self.ttl() / setting::LAST_GRACE),
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
    let arguments = arguments.clone().settled(&session.config)?;
    runtime.block_on(serve(session, &arguments))
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
    let (mut again, mut past) = (false, None);
    loop {
        let (signals, past) = (&mut signals, &mut past);
        let mut round = Round { session, arguments, signals, again, past };
        match round.play().await {
            Ok(Outlook::Over(None)) => return Ok(()),
            Ok(Outlook::Over(Some(code))) => return Err(Failure::silent(code)),
            Ok(Outlook::Again) => session.remark("contending again"),
            // The store has failed once more, which is no reason to give up what was asked for.
            Err(failure) if again && failure.code == Code::Unreachable => {
                session.remark(format!("trying again: {}", failure.message));
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    signal = signals.ending() => return Err(Failure::silent(signals::code(signal))),
                }
            }
            Err(failure) => return Err(failure),
        }
        again = true;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn settled(flags: &[&str]) -> RunArguments {
        let text = "[run]\ngrace = \"40s\"\nisolate = \"never\"\nwitness = false";
        let config = Config::parse(Path::new("a.toml"), text).unwrap();
        let words = ["incumbent", "run", "--lease", "a"].iter().chain(flags).chain(&["--", "true"]);
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Run(arguments) => arguments.settled(&config).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_file_says_what_no_flag_says() {
        let filed = settled(&[]);
        assert_eq!(filed.grace(), Duration::from_secs(40));
        assert!(matches!(filed.isolate, Some(Isolate::Never)) && filed.no_witness);
        let flagged = settled(&["--grace", "1s", "--isolate=auto", "--ttl", "20s"]);
        assert_eq!((flagged.grace().as_secs(), flagged.ttl().as_secs()), (1, 20));
        assert!(matches!(flagged.isolate, Some(Isolate::Auto)));
    }

    #[test]
    fn the_last_grace_is_short_unless_it_is_chosen() {
        let last = |flags: &[&str]| settled(flags).plan().warning;
        assert_eq!(last(&[]), Duration::from_millis(750));
        assert_eq!(last(&["--ttl", "60s"]), Duration::from_secs(3));
        assert_eq!(last(&["--grace", "200ms"]), Duration::from_millis(200));
        assert_eq!(last(&["--grace", "200ms", "--last-grace", "4s"]), Duration::from_secs(4));
    }
}
