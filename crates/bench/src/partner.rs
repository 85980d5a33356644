//! Other processes of a measurement, as the one that started them sees them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Another process of this program, which does what it is told.
pub(crate) struct Partner {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Partner {
    /// Starts one.
    pub(crate) fn start(arguments: &[&str]) -> Result<Self> {
        Self::start_with(arguments, &[])
    }

    /// The same with variables of its own.
    pub(crate) fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, input, output })
    }

    /// One with a node, once that has joined.
    pub(crate) fn player(url: &str, cluster: &str, node: &str) -> Result<Self> {
        let mut player = Self::start(&["player", url, cluster, node])?;
        player.answer()?;
        Ok(player)
    }

    /// Its process.
    #[cfg(feature = "all-stores")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn tell(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.input, "{line}")?)
    }

    pub(crate) fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        anyhow::ensure!(!line.is_empty(), "the other process ended");
        Ok(line.trim().to_owned())
    }

    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        self.tell(line)?;
        self.answer()
    }

    pub(crate) fn moment(&mut self, line: &str) -> Result<u64> {
        Ok(self.ask(line)?.parse()?)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Microseconds from the moment in which one gives a lease up to the moment in which the other
/// has it. It must be a new lease each time, because who gave one up stands back from it.
pub(crate) fn hand_over(holder: &mut Partner, waiter: &mut Partner, lease: &str) -> Result<f64> {
    // Until the other has seen who holds it, and waits for nothing but the push.
    hand_over_after(holder, waiter, lease, Duration::from_millis(25))
}

/// The same once the other has waited for so long.
pub(crate) fn hand_over_after(
    holder: &mut Partner,
    waiter: &mut Partner,
    lease: &str,
    settle: Duration,
) -> Result<f64> {
    let stand = format!("stand {lease}");
    holder.ask(&stand)?;
    holder.ask("wait")?;
    waiter.ask(&stand)?;
    waiter.tell("wait")?;
    pause(settle);
    let freed = holder.moment("free")?;
    let elected: u64 = waiter.answer()?.parse()?;
    waiter.ask("free")?;
    Ok(elected.saturating_sub(freed) as f64 / 1000.0)
}

#[allow(clippy::disallowed_methods, reason = "lets the other process settle before it is measured")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}
