//! What the assertion costs on PostgreSQL: transactions a second with it and without, beside what an
//! additional statement costs that does nothing.
//!
//! ```sh
//! cargo bench -p incumbent-fence --bench postgres                    # about ten minutes
//! cargo bench -p incumbent-fence --bench postgres -- --rounds 9 --connections 8
//! ```
//!
//! A private server with its own settings (so that each commit is flushed), a node that leads there,
//! and pgbench with `BEGIN`, two updates, two selects, an insert and `COMMIT`, all connections under
//! one term. The variants take turns in short rounds, so that whatever else this machine does hits all
//! of them; the first seconds of each, in which sessions make their plans, don't count. What is
//! printed are medians, and ratios of medians.
#![allow(missing_docs, reason = "nobody calls this")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use incumbent::{Assertion, Leadership, Node};
use incumbent_proving::Server;
use incumbent_proving::server::postgres;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const TABLES: &str = "CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL) WITH (fillfactor = 50);\n\
    INSERT INTO account SELECT i, 0 FROM generate_series(1, 100000) i;\n\
    CREATE TABLE journal (id bigserial PRIMARY KEY, a int, at timestamptz DEFAULT now());\n\
    VACUUM ANALYZE;\n";

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
    let variants = variants(&held.assertion())?;
    println!(
        "{} rounds of {} s, without the first {WARM_UP}\n\n| connections | variant | transactions a second | ratio | lowest and highest round |\n| --- | --- | --- | --- | --- |",
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
                result.push(variant.run(&server, connections, plan.seconds)?);
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
        let mut plan = Self { rounds: 6, seconds: 6, connections: Vec::new() };
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

fn variants(assertion: &Assertion) -> Result<Vec<Variant>, Failure> {
    let sql = assertion.sql.as_ref().ok_or("the store has no assertion")?;
    let (cluster, term) = (&assertion.cluster, assertion.term.to_string());
    let fill = |text: &str, second: &str| {
        let text = text.replace("$1", &format!("'{cluster}'"));
        text.replace("$2", &format!("'{second}'")).replace("$3", &term) + ";\n"
    };
    let assert = fill(&sql.statement, &assertion.lease);
    let query = sql.query.as_deref().ok_or("the store has no query")?;
    let variant =
        |name, statement: &str, at_once| Variant { name, statement: statement.to_owned(), at_once };
    Ok(vec![
        variant("nothing", "", false),
        variant("`SELECT 1`", "SELECT 1;\n", false),
        variant("a bare shared advisory lock", "SELECT pg_advisory_xact_lock_shared(42);\n", false),
        variant("**the assertion**", &assert, false),
        variant("the assertion, sent with `BEGIN`", &assert, true),
        variant("`fence_sql()`, which locks the row", &fill(query, &assertion.key), false),
    ])
}

impl Variant {
    /// Transactions a second.
    fn run(&self, server: &Server, connections: usize, seconds: usize) -> Result<f64, Failure> {
        let begin = if self.at_once {
            format!("\\startpipeline\nBEGIN;\n{}\\endpipeline\n", self.statement)
        } else {
            format!("BEGIN;\n{}", self.statement)
        };
        let script =
            format!("\\set a random(1, 100000)\n\\set b random(1, 100000)\n{begin}{WORK}COMMIT;\n");
        let (seconds_text, connections) = (seconds.to_string(), connections.to_string());
        let arguments =
            ["-n", "-M", "prepared", "-P", "1", "-T", &seconds_text, "-c", &connections, "-f", "-"];
        let told = pgtool(server, "pgbench", &arguments, &script)?;
        // `progress: 3.0 s, 2431.1 tps, lat …`
        let rates = told.lines().filter_map(|line| {
            let rest = line.strip_prefix("progress: ")?;
            rest.split(", ").nth(1)?.strip_suffix(" tps")?.parse::<f64>().ok()
        });
        let rates: Vec<f64> = rates.skip(WARM_UP).collect();
        if rates.is_empty() {
            return Err(format!("pgbench told nothing: {told}").into());
        }
        Ok(rates.iter().sum::<f64>() / rates.len() as f64)
    }
}

/// Runs a program of PostgreSQL's on the server, and gives back what it said.
fn pgtool(server: &Server, name: &str, arguments: &[&str], input: &str) -> Result<String, Failure> {
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
    let output = child.wait_with_output()?;
    let mut told = String::from_utf8_lossy(&output.stderr).into_owned();
    write!(told, "{}", String::from_utf8_lossy(&output.stdout))?;
    if output.status.success() { Ok(told) } else { Err(format!("{name}: {told}").into()) }
}

fn show(connections: usize, variants: &[Variant], results: &[Vec<f64>]) {
    let median = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let base = results.first().map_or(f64::NAN, |values| median(values));
    for (variant, values) in variants.iter().zip(results) {
        let (tps, name) = (median(values), variant.name);
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(0.0, f64::max);
        let ratio = tps / base;
        println!(
            "| {connections} | {name} | {tps:.0} | {ratio:.2} | {lowest:.0} to {highest:.0} |"
        );
    }
}
