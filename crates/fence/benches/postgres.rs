//! What the assertion costs on PostgreSQL: transactions a second with it and without, beside what an
//! additional statement costs that does nothing.
//!
//! ```sh
//! cargo bench -p incumbent-fence --bench postgres                    # about fifteen minutes
//! cargo bench -p incumbent-fence --bench postgres -- --rounds 9 --connections 8
//! ```
//!
//! A private server with its own settings (so that each commit is flushed), a node that leads there,
//! and pgbench with `BEGIN`, two updates, two selects, an insert and `COMMIT`, all connections under
//! one term. The variants take turns in short rounds, so that whatever else this machine does hits all
//! of them; the first seconds of each, in which sessions make their plans, don't count. A ratio is that
//! of a variant to the bare transaction of the same round, and what is printed is the median of these.
//! The server's processor time for each transaction says more than the rate where other programs share
//! the disk and the processors. The function of the version before stands beside this one's.
#![allow(missing_docs, reason = "nobody calls this")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::time::Duration;

use incumbent::{Assertion, Leadership, Node};
use incumbent_proving::Server;
use incumbent_proving::server::postgres;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const TABLES: &str = "CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL) WITH (fillfactor = 50);\n\
    INSERT INTO account SELECT i, 0 FROM generate_series(1, 100000) i;\n\
    CREATE TABLE journal (id bigserial PRIMARY KEY, a int, at timestamptz DEFAULT now());\n\
    VACUUM ANALYZE;\n";

/// The function of the version before, made beside the present one for comparison.
const FORMER: &str = include_str!("../../../stores/postgres/tests/former/assert_3.sql");

const WORK: &str = "UPDATE account SET n = n + 1 WHERE id = :a;\n\
    UPDATE account SET n = n - 1 WHERE id = :b;\n\
    SELECT n FROM account WHERE id = :a;\n\
    SELECT n FROM account WHERE id = :b;\n\
    INSERT INTO journal (a) VALUES (:a);\n";

/// What stands between `BEGIN` and the work.
struct Variant {
    name: &'static str,
    statement: String,
    /// Whether it is sent together with `BEGIN`.
    at_once: bool,
}

struct Plan {
    rounds: usize,
    seconds: usize,
    connections: Vec<usize>,
}

/// So many seconds of each round don't count.
const WARM_UP: usize = 2;

fn main() -> Result<(), Failure> {
    let plan = Plan::read(std::env::args().skip(1))?;
    let server = postgres::start(&[]);
    let url = postgres::url(&server, "postgres");
    pgtool(&server, "psql", &["-q", "-v", "ON_ERROR_STOP=1"], TABLES)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (node, held) = runtime.block_on(lead(&url))?;
    pgtool(&server, "psql", &["-q", "-1", "-v", "ON_ERROR_STOP=1"], &former())?;
    let variants = variants(&held.assertion())?;
    let processes = Processes::of(&server)?;
    println!(
        "{} rounds of {} s, without the first {WARM_UP}\n\n| connections | variant \
         | transactions a second | ratio | its lowest and highest round | server's µs a transaction \
         |\n| --- | --- | --- | --- | --- | --- |",
        plan.rounds, plan.seconds
    );
    for &connections in &plan.connections {
        let mut results = vec![Vec::new(); variants.len()];
        for round in 0..plan.rounds {
            for turn in 0..variants.len() {
                // Nobody comes always first, nor always after the same one.
                let turn = if round % 2 == 0 { turn } else { variants.len() - 1 - turn };
                let place = (turn + round / 2) % variants.len();
                let (Some(variant), Some(result)) = (variants.get(place), results.get_mut(place))
                else {
                    continue;
                };
                result.push(variant.run(&server, &processes, connections, plan.seconds)?);
            }
        }
        show(connections, &variants, &results);
    }
    drop(held);
    runtime.block_on(node.leave())?;
    Ok(())
}

impl Plan {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut plan = Self { rounds: 7, seconds: 6, connections: Vec::new() };
        while let Some(flag) = arguments.next() {
            // cargo's own.
            if flag == "--bench" {
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{flag} needs a number"))?;
            let value = value.parse().map_err(|error| format!("{flag} {value:?}: {error}"))?;
            match flag.as_str() {
                "--rounds" => plan.rounds = value,
                "--seconds" => plan.seconds = value,
                "--connections" => plan.connections.push(value),
                other => {
                    return Err(format!(
                        "{other:?}: there are --rounds, --seconds and --connections"
                    )
                    .into());
                }
            }
        }
        if plan.rounds == 0 || plan.seconds < WARM_UP + 2 {
            return Err(format!("at least one round, of {} seconds or more", WARM_UP + 2).into());
        }
        if plan.connections.is_empty() {
            plan.connections = vec![1, 8, 32];
        }
        Ok(plan)
    }
}

/// A node that leads, beats and renews all the while.
async fn lead(url: &str) -> Result<(Node, Leadership), Failure> {
    let store = incumbent::open(url).await?;
    let node = Node::builder().cluster("bench").name("first").ttl(Duration::from_secs(15));
    let node = node.join(store).await?;
    let held = node.campaign("scheduler")?.elected().await?;
    Ok((node, held))
}

/// What makes the former function under names of its own, over the tables that are there.
fn former() -> String {
    let names = ["meta", "key", "turn", "turns", "turns_planned", "examine", "assert"];
    let text = names.iter().fold(FORMER.to_owned(), |text, name| {
        text.replace(&format!("{{{name}}}"), &format!("public.former_{name}"))
    });
    let text =
        text.replace("{records}", "public.incumbent_records").replace("{assert_version}", "3");
    format!("CREATE TABLE public.former_meta (name text PRIMARY KEY, value int);\n{text}")
}

fn variants(assertion: &Assertion) -> Result<Vec<Variant>, Failure> {
    let sql = assertion.sql.as_ref().ok_or("the store has no assertion")?;
    let (cluster, term) = (&assertion.cluster, assertion.term.to_string());
    let fill = |text: &str, second: &str| {
        let text = text.replace("$1", &format!("'{cluster}'"));
        text.replace("$2", &format!("'{second}'")).replace("$3", &term) + ";\n"
    };
    let assert = fill(&sql.statement, &assertion.lease);
    let former = fill("SELECT former_assert($1, $2, $3)", &assertion.lease);
    let query = sql.query.as_deref().ok_or("the store has no query")?;
    let variant =
        |name, statement: &str, at_once| Variant { name, statement: statement.to_owned(), at_once };
    Ok(vec![
        variant("nothing", "", false),
        variant("`SELECT 1`", "SELECT 1;\n", false),
        variant("a bare shared advisory lock", "SELECT pg_advisory_xact_lock_shared(42);\n", false),
        variant("**the assertion**", &assert, false),
        variant("the assertion, sent with `BEGIN`", &assert, true),
        variant("the former version's assertion", &former, false),
        variant("`fence_sql()`, which locks the row", &fill(query, &assertion.key), false),
    ])
}

/// What a round showed.
#[derive(Clone, Copy)]
struct Seen {
    /// Transactions a second.
    rate: f64,
    /// Microseconds of the server's processors for each.
    cost: f64,
}

impl Variant {
    fn run(
        &self,
        server: &Server,
        processes: &Processes,
        connections: usize,
        seconds: usize,
    ) -> Result<Seen, Failure> {
        let begin = if self.at_once {
            format!("\\startpipeline\nBEGIN;\n{}\\endpipeline\n", self.statement)
        } else {
            format!("BEGIN;\n{}", self.statement)
        };
        let script =
            format!("\\set a random(1, 100000)\n\\set b random(1, 100000)\n{begin}{WORK}COMMIT;\n");
        let (time, connections) = (seconds.to_string(), connections.to_string());
        let arguments =
            ["-n", "-M", "prepared", "-P", "1", "-T", &time, "-c", &connections, "-f", "-"];
        let mut child = start(server, "pgbench", &arguments, &script)?;
        let told = BufReader::new(child.stderr.take().ok_or("no output")?);
        let (mut rates, mut used, mut said) = (Vec::new(), Vec::new(), String::new());
        for line in told.lines() {
            let line = line?;
            // `progress: 3.0 s, 2431.1 tps, lat …`
            let rate = line.strip_prefix("progress: ").and_then(|rest| rest.split(", ").nth(1));
            match rate.and_then(|rate| rate.strip_suffix(" tps")?.parse::<f64>().ok()) {
                Some(rate) => {
                    rates.push(rate);
                    used.push(processes.used()?);
                }
                None => said += &line,
            }
        }
        // The last second isn't told whole: its sessions end in it.
        let last = seconds - 2;
        let (Some(counted), Some(from), Some(to)) =
            (rates.get(WARM_UP..=last), used.get(WARM_UP - 1), used.get(last))
        else {
            return Err(format!("pgbench told too little: {said}").into());
        };
        if !child.wait()?.success() {
            return Err(format!("pgbench: {said}").into());
        }
        let done: f64 = counted.iter().sum();
        Ok(Seen { rate: done / counted.len() as f64, cost: (to - from) * 1e6 / done })
    }
}

/// The server's processes, which are children of one.
struct Processes {
    parent: String,
}

impl Processes {
    fn of(server: &Server) -> Result<Self, Failure> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer';\n";
        let pid = pgtool(server, "psql", &["-q", "-A", "-t"], sql)?;
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))?;
        let parent = field(&status, PARENT).ok_or("the server has no parent")?;
        Ok(Self { parent: parent.to_owned() })
    }

    /// Seconds of processor time that those which run now have used.
    fn used(&self) -> Result<f64, Failure> {
        let mut ticks = 0;
        for entry in std::fs::read_dir("/proc")? {
            // One that has just ended is no error.
            let Ok(status) = std::fs::read_to_string(entry?.path().join("stat")) else { continue };
            if field(&status, PARENT) == Some(&self.parent) {
                let spent =
                    [USER, SYSTEM].map(|number| field(&status, number)?.parse::<u64>().ok());
                ticks += spent.iter().flatten().sum::<u64>();
            }
        }
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}

/// Fields of `/proc/PID/stat`, counted after the name, which may hold anything.
const PARENT: usize = 1;
const USER: usize = 11;
const SYSTEM: usize = 12;

fn field(status: &str, number: usize) -> Option<&str> {
    status.rsplit_once(')')?.1.split_whitespace().nth(number)
}

/// Runs a program of PostgreSQL's on the server, and gives back what it said.
fn pgtool(server: &Server, name: &str, arguments: &[&str], input: &str) -> Result<String, Failure> {
    let mut child = start(server, name, arguments, input)?;
    let mut said = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut said)?;
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(said);
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

fn start(server: &Server, name: &str, arguments: &[&str], input: &str) -> Result<Child, Failure> {
    let port = server.port().to_string();
    let mut child = postgres::command(name)
        .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres"])
        .args(arguments)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no input")?.write_all(input.as_bytes())?;
    Ok(child)
}

fn show(connections: usize, variants: &[Variant], results: &[Vec<Seen>]) {
    let Some(bare) = results.first() else { return };
    for (variant, seen) in variants.iter().zip(results) {
        let rate = median(&sorted(seen.iter().map(|seen| seen.rate)));
        let cost = median(&sorted(seen.iter().map(|seen| seen.cost)));
        let ratios = sorted(seen.iter().zip(bare).map(|(seen, bare)| seen.rate / bare.rate));
        let (Some(lowest), Some(highest)) = (ratios.first(), ratios.last()) else { continue };
        println!(
            "| {connections} | {} | {rate:.0} | {:.2} | {lowest:.2} to {highest:.2} | {cost:.0} |",
            variant.name,
            median(&ratios)
        );
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of an even number of them, the mean of the two in the middle.
fn median(values: &[f64]) -> f64 {
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(values.len().saturating_sub(1) / 2), at(values.len() / 2))
}
