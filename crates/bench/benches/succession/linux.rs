use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use incumbent::clock;
use incumbent::store::{Exchange, Expect, Key, Lane, Outcome, Put, Stamp, Write};
use rustix::process::{Pid, Signal, kill_process};

use crate::heir::{self, Post};
use crate::spread::Spread;

/// How long a round may take, beside the ttl, before something must be wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many stand for the lease at any time.
const HEIRS: usize = 3;

#[derive(Debug, Parser)]
struct Arguments {
    /// The store; a SQLite file in a temporary directory unless named.
    #[arg(long)]
    store: Option<String>,
    /// How many rounds for each way.
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Measure only this; may be given several times. Without it all but the last.
    #[arg(long, value_enum)]
    way: Vec<Way>,
    /// The ttl in milliseconds.
    #[arg(long, default_value_t = 10_000)]
    ttl_ms: u64,
    /// Those that are replaced join so long before the next round.
    #[arg(long, default_value_t = 500)]
    settle_ms: u64,
    /// Print every round.
    #[arg(long)]
    rounds_too: bool,
    /// This process is an heir; it reports to this socket.
    #[arg(long, hide = true)]
    heir: Option<PathBuf>,
    /// That heir has no witness, and is none.
    #[arg(long, hide = true)]
    unseen: bool,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// How a reign ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// SIGKILL.
    Kill,
    /// SIGTERM, after which it leaves in order.
    Terminate,
    /// It resigns, and all live on.
    Resign,
    /// SIGKILL where nobody sees it: in shares of the ttl.
    Vanish,
}

impl Way {
    fn story(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL to the leader, until the next leads",
            Self::Terminate => "SIGTERM to the leader, until the next leads",
            Self::Resign => "the leader resigns, until the next leads",
            Self::Vanish => "SIGKILL that nobody sees, until the next leads",
        }
    }
}

pub(crate) fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let ttl = Duration::from_millis(arguments.ttl_ms);
    match (&arguments.heir, &arguments.store) {
        (Some(socket), Some(url)) => {
            heir::serve(&Post { url, ttl, socket, witness: !arguments.unseen })
        }
        (Some(_), None) => bail!("an heir needs --store"),
        (None, _) => measure(&arguments),
    }
}

fn measure(arguments: &Arguments) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let file = format!("sqlite:{}", scratch.path().join("bench.db").display());
    let url = arguments.store.clone().unwrap_or(file);
    let swap = Spread::new(swaps(&url)?);
    swap.print("one compare-and-swap in the store");
    let ways = match arguments.way.as_slice() {
        [] => &[Way::Kill, Way::Terminate, Way::Resign],
        ways => ways,
    };
    for way in ways {
        let socket = scratch.path().join(format!("{way:?}"));
        let reports = UnixDatagram::bind(&socket)?;
        reports.set_read_timeout(Some(PATIENCE + 2 * Duration::from_millis(arguments.ttl_ms)))?;
        let mut house =
            House { arguments, url: &url, socket, reports, heirs: Vec::new(), way: *way };
        let spread = Spread::new(house.reign()?);
        spread.print(way.story());
        match way {
            Way::Vanish => {
                let share = |quantile| spread.quantile(quantile) / arguments.ttl_ms as f64;
                let (median, most) = (share(0.5), share(1.0));
                println!("{:<48} median {median:7.3}  max {most:7.3}", "  in its ttl");
            }
            Way::Kill | Way::Terminate | Way::Resign => {
                let (ratio, over) = (spread.quantile(0.5) / swap.quantile(0.5), spread.above(50.0));
                println!("{:<48} median {ratio:7.2}  above 50 ms: {over}", "  in swaps");
            }
        }
    }
    Ok(())
}

struct House<'a> {
    arguments: &'a Arguments,
    url: &'a str,
    socket: PathBuf,
    reports: UnixDatagram,
    heirs: Vec<Child>,
    way: Way,
}

struct Reign {
    leader: u32,
    since: u64,
}

impl House<'_> {
    /// The milliseconds of each succession.
    fn reign(&mut self) -> Result<Vec<f64>> {
        for _ in 0..HEIRS {
            self.start()?;
        }
        let mut reign = None;
        for _ in 0..=HEIRS {
            reign = self.next()?.or(reign);
        }
        let mut reign = reign.context("nobody leads")?;
        let mut took = Vec::new();
        for number in 0..self.arguments.rounds {
            // The leader's age at its end varies, so that its beats and those that look for them do.
            let more = Duration::from_millis(number as u64 * 137 % (self.arguments.ttl_ms / 2));
            pause(Duration::from_millis(self.arguments.settle_ms) + more + self.rest());
            let (next, struck) = self.end(&reign)?;
            let span = next.since.saturating_sub(struck) as f64 / 1e6;
            if self.arguments.rounds_too {
                let led = struck.saturating_sub(reign.since) as f64 / 1e6;
                let (from, to) = (struck, next.since);
                println!("  led for {led:9.2} ms, followed after {span:9.2}, from {from} to {to}");
            }
            took.push(span);
            reign = next;
        }
        Ok(took)
    }

    /// Who resigned stands back for up to half a ttl, and there should always be two others.
    fn rest(&self) -> Duration {
        match self.way {
            Way::Resign => Duration::from_millis(self.arguments.ttl_ms / 4),
            Way::Kill | Way::Terminate | Way::Vanish => Duration::ZERO,
        }
    }

    fn start(&mut self) -> Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--heir").arg(&self.socket).args(["--store", self.url]);
        command.arg(format!("--ttl-ms={}", self.arguments.ttl_ms));
        if self.way == Way::Vanish {
            command.arg("--unseen");
        }
        self.heirs.push(command.stdin(Stdio::null()).spawn()?);
        Ok(())
    }

    /// Ends a reign; gives the next, and when the one before was ended.
    fn end(&mut self, reign: &Reign) -> Result<(Reign, u64)> {
        let place = self.heirs.iter().position(|heir| heir.id() == reign.leader);
        let place = place.context("an unknown leader")?;
        let pid = i32::try_from(reign.leader).ok().and_then(Pid::from_raw).context("no pid")?;
        let struck = clock::now().as_nanos();
        match self.way {
            Way::Kill | Way::Vanish => kill_process(pid, Signal::KILL)?,
            Way::Terminate => kill_process(pid, Signal::TERM)?,
            // What it understands by that is its own affair.
            Way::Resign => kill_process(pid, Signal::USR1)?,
        }
        let next = loop {
            if let Some(next) = self.next()? {
                break next;
            }
        };
        ensure!(next.leader != reign.leader, "the same one leads again");
        if self.way != Way::Resign {
            self.heirs.swap_remove(place).wait()?;
            self.start()?;
            ensure!(self.next()?.is_none(), "two reigns at once");
        }
        Ok((next, struck))
    }

    /// What is reported next: a new reign, or that somebody joined.
    fn next(&self) -> Result<Option<Reign>> {
        let mut bytes = [0; 512];
        let length = self.reports.recv(&mut bytes).context("no report in time")?;
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned();
        let mut words = text.split(' ');
        let what = words.next().unwrap_or_default();
        let leader = words.next().unwrap_or_default().parse()?;
        let since = words.next().unwrap_or_default().parse()?;
        Ok((what == "led").then_some(Reign { leader, since }))
    }
}

impl Drop for House<'_> {
    fn drop(&mut self) {
        for heir in &mut self.heirs {
            let _ = heir.kill();
            let _ = heir.wait();
        }
    }
}

/// Milliseconds of one compare-and-swap after another.
fn swaps(url: &str) -> Result<Vec<f64>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = incumbent::open(url).await?;
        let key = Key::new("once/bare-swap");
        let delete = Exchange { writes: vec![Write::Delete(key.clone())], reads: Vec::new() };
        store.exchange("bare", Lane::Change, delete).await?;
        let mut took = Vec::new();
        let mut expect = Expect::Absent;
        for attempt in 0..200 {
            let stamp = Stamp { writer: u64::from(std::process::id()), attempt };
            let put = Put {
                key: key.clone(),
                expect,
                value: b"{}".to_vec(),
                stamp,
                hint: true,
                durable: true,
            };
            let exchange = Exchange { writes: vec![Write::Put(put)], reads: Vec::new() };
            let since = clock::now();
            let reply = store.exchange("bare", Lane::Change, exchange).await?;
            took.push(clock::now().since(since).as_secs_f64() * 1e3);
            expect = match reply.writes.into_iter().next() {
                Some(Outcome::Applied(version)) => Expect::Version(version),
                other => bail!("not applied: {other:?}"),
            };
        }
        Ok(took)
    })
}

#[allow(clippy::disallowed_methods, reason = "nobody else runs here")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
