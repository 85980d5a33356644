use std::error::Error;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Parser;
use incumbent::clock;
use incumbent::store::{Exchange, Expect, Key, Lane, Put, Stamp, Write};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How long a round may take before something must be wrong.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Parser)]
struct Arguments {
    /// The store; a SQLite file in a temporary directory unless named.
    #[arg(long)]
    store: Option<String>,
    /// How many rounds for each kind of victim.
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// How the command is isolated.
    #[arg(long, default_value = "auto")]
    isolate: String,
    /// This process is the command; it reports to this socket.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Given by `cargo bench`.
    #[arg(long)]
    bench: bool,
}

pub(crate) fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.report {
        Some(socket) => report(socket),
        None => measure(&arguments),
    }
}

/// The command: says when it started, and whether anything of the one before lives.
fn report(socket: &Path) -> Result<()> {
    let started = clock::now().as_nanos();
    let node = std::env::var("INCUMBENT_NODE").unwrap_or_default();
    let mut alone = true;
    if !node.is_empty() {
        let lock = std::fs::File::create(socket.with_extension("lock"))?;
        alone = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
        // A daemon that has the lock too, and a session of its own.
        let daemon = "setsid sleep 600 >/dev/null 2>&1 &";
        Command::new("sh").args(["-c", daemon]).status()?;
        // It stays open for the life of this process.
        std::mem::forget(lock);
    }
    let line = format!("{node} {started} {alone}");
    UnixDatagram::unbound()?.send_to(line.as_bytes(), socket)?;
    pause(Duration::from_secs(600));
    Ok(())
}

struct Fleet<'a> {
    arguments: &'a Arguments,
    url: String,
    socket: PathBuf,
    reports: UnixDatagram,
    runs: Vec<Child>,
    overlaps: usize,
}

struct Report {
    holder: u32,
    at: u64,
}

impl Fleet<'_> {
    fn start(&mut self) -> Result<()> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_incumbent"));
        command.args(["run", "-q", "--lease", "take-over"]);
        command.arg(format!("--isolate={}", self.arguments.isolate));
        command.env("INCUMBENT_STORE", &self.url).env("INCUMBENT_CLUSTER", "bench");
        command.env_remove("INCUMBENT_NODE").stdin(Stdio::null());
        command.arg("--").arg(std::env::current_exe()?).arg("--report").arg(&self.socket);
        self.runs.push(command.spawn()?);
        Ok(())
    }

    fn next(&mut self) -> Result<Report> {
        let mut bytes = [0; 512];
        let length = self.reports.recv(&mut bytes)?;
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned();
        let mut words = text.split(' ');
        let node = words.next().unwrap_or_default();
        let holder = node.rsplit_once(':').ok_or("a node without a process id")?.1.parse()?;
        let at = words.next().unwrap_or_default().parse()?;
        self.overlaps += usize::from(words.next() != Some("true"));
        Ok(Report { holder, at })
    }

    /// Kills, and gives the milliseconds until the next command ran.
    fn round(&mut self, leader: &mut Report, victim: Victim) -> Result<f64> {
        // Whoever has just been started joins meanwhile.
        pause(Duration::from_millis(300));
        let pid = match victim {
            Victim::Holder => leader.holder,
            Victim::Command => command_of(leader.holder)?,
        };
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process id")?;
        let struck = clock::now().as_nanos();
        kill_process(pid, Signal::KILL)?;
        let next = self.next()?;
        let took = next.at.saturating_sub(struck) as f64 / 1e6;
        let gone = self.runs.iter().position(|run| run.id() == leader.holder);
        let mut gone = self.runs.swap_remove(gone.ok_or("an unknown leader")?);
        gone.wait()?;
        *leader = next;
        self.start()?;
        Ok(took)
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        for run in &mut self.runs {
            let _ = run.kill();
            let _ = run.wait();
        }
    }
}

#[derive(Clone, Copy)]
enum Victim {
    Holder,
    Command,
}

fn measure(arguments: &Arguments) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("bench.db");
    let url = arguments.store.clone().unwrap_or_else(|| format!("sqlite:{}", file.display()));
    let socket = scratch.path().join("reports");
    let reports = UnixDatagram::bind(&socket)?;
    reports.set_read_timeout(Some(PATIENCE))?;
    let commit = Spread::of(commits(&url)?);
    commit.print("one compare-and-swap in the store");
    let start = Spread::of(starts(&socket, &reports)?);
    start.print("the start of a process");
    let runs = Vec::new();
    let mut fleet = Fleet { arguments, url, socket, reports, runs, overlaps: 0 };
    for _ in 0..3 {
        fleet.start()?;
    }
    let mut leader = fleet.next()?;
    for (victim, name) in [(Victim::Holder, "incumbent"), (Victim::Command, "the command")] {
        let mut took = Vec::new();
        for _ in 0..arguments.rounds {
            took.push(fleet.round(&mut leader, victim)?);
        }
        Spread::of(took).print(&format!("SIGKILL to {name}, until the next command runs"));
    }
    println!("{} overlaps in {} rounds", fleet.overlaps, 2 * arguments.rounds);
    if fleet.overlaps > 0 { Err("two commands ran at once".into()) } else { Ok(()) }
}

/// Milliseconds of one compare-and-swap after another.
fn commits(url: &str) -> Result<Vec<f64>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = incumbent::open(url).await?;
        let key = Key::new("once/bare-commit");
        let mut took = Vec::new();
        let mut expect = Expect::Absent;
        store.exchange("bare", Lane::Change, delete(&key)).await?;
        for attempt in 0..200 {
            let stamp = Stamp { writer: u64::from(std::process::id()), attempt };
            let (value, hint) = (b"{}".to_vec(), true);
            let put = Put { key: key.clone(), expect, value, stamp, hint, durable: true };
            let exchange = Exchange { writes: vec![Write::Put(put)], reads: Vec::new() };
            let since = clock::now();
            let reply = store.exchange("bare", Lane::Change, exchange).await?;
            took.push(clock::now().since(since).as_secs_f64() * 1e3);
            expect = match reply.writes.into_iter().next() {
                Some(incumbent::store::Outcome::Applied(version)) => Expect::Version(version),
                other => return Err(format!("not applied: {other:?}").into()),
            };
        }
        store.exchange("bare", Lane::Change, delete(&key)).await?;
        Ok(took)
    })
}

fn delete(key: &Key) -> Exchange {
    Exchange { writes: vec![Write::Delete(key.clone())], reads: Vec::new() }
}

/// Milliseconds from a spawn to the first act of what was started.
fn starts(socket: &Path, reports: &UnixDatagram) -> Result<Vec<f64>> {
    let mut took = Vec::new();
    for _ in 0..50 {
        let since = clock::now().as_nanos();
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--report".as_ref(), socket.as_os_str()])
            .env_remove("INCUMBENT_NODE")
            .stdin(Stdio::null())
            .spawn()?;
        let mut bytes = [0; 512];
        let length = reports.recv(&mut bytes)?;
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned();
        let at: u64 = text.split(' ').nth(1).unwrap_or_default().parse()?;
        took.push(at.saturating_sub(since) as f64 / 1e6);
        child.kill()?;
        child.wait()?;
    }
    Ok(took)
}

/// The command below a holder: its grandchild, or one further down in a namespace.
fn command_of(holder: u32) -> Result<u32> {
    let guardian = child_of(holder)?;
    let child = child_of(guardian)?;
    let line = std::fs::read_to_string(format!("/proc/{child}/cmdline"))?;
    if line.contains("supervise-init") { child_of(child) } else { Ok(child) }
}

fn child_of(pid: u32) -> Result<u32> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        let list = std::fs::read_to_string(task.path().join("children"))?;
        if let Some(child) = list.split_whitespace().next() {
            return Ok(child.parse()?);
        }
    }
    Err(format!("{pid} has no child").into())
}

struct Spread(Vec<f64>);

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.0.get(at.min(last)).copied().unwrap_or(f64::NAN)
    }

    fn print(&self, what: &str) {
        let [median, p90, p99, most] = [0.5, 0.9, 0.99, 1.0].map(|share| self.quantile(share));
        println!(
            "{what:<55} median {median:7.2} ms  p90 {p90:7.2}  p99 {p99:7.2}  max {most:7.2}  \
             ({} times)",
            self.0.len()
        );
    }
}

#[allow(clippy::disallowed_methods, reason = "nobody else runs here")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
