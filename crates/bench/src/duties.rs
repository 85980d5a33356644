//! Many duties on a few nodes of one PostgreSQL, each node a process: how soon all of them run, how
//! soon the duties of a node that is killed run elsewhere, and what they cost while nothing happens.

mod hand;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use incumbent::{Cluster, Moment, OpenStore, clock};

pub(crate) use self::hand::hand;
use crate::fleet::server::{self, Load};
use crate::partner::{Partner, pause};

/// How many, on how many nodes.
#[derive(Args, Debug)]
pub(crate) struct DutiesArguments {
    /// How many duties.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    duties: usize,
    /// On how many nodes, each a process.
    #[arg(long, default_value_t = 10, value_name = "N")]
    nodes: usize,
    /// For how many seconds they are watched while nothing happens; also with only 10 duties.
    #[arg(long, default_value_t = 30, value_name = "N")]
    seconds: u64,
}

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) fn measure(arguments: &DutiesArguments) -> Result<()> {
    let url = std::env::var("INCUMBENT_TEST_POSTGRES")
        .context("INCUMBENT_TEST_POSTGRES names no server")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let store = runtime.block_on(incumbent::open(&url))?;
    let client = runtime.block_on(server::connect(&url))?;
    let watched = Duration::from_secs(arguments.seconds);
    println!(
        "| duties | server CPU, of one core | statements a second | rows read a second | rows written a second |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let mut recovered = None;
    for duties in [10, arguments.duties] {
        let mut fleet = Fleet::start(&url, duties, arguments.nodes)?;
        let started = fleet.await_all(duties)?;
        fleet.await_even(duties)?;
        let before = runtime.block_on(Load::read(&client))?;
        pause(watched);
        let load = runtime.block_on(Load::read(&client))?.since(&before);
        println!("| {duties} | {load} |");
        recovered = Some((started, runtime.block_on(fleet.lose_one(&store, duties))?));
    }
    let (started, recovered) = recovered.context("nothing was measured")?;
    println!("\nall {} ran {started:?} after the last node had joined", arguments.duties);
    println!("one of {} nodes was killed: {recovered}", arguments.nodes);
    Ok(())
}

struct Fleet {
    cluster: String,
    hands: Vec<Partner>,
    joined: Moment,
}

/// What became of the duties of a node that was killed.
struct Recovery {
    duties: usize,
    /// From the kill until the member was closed.
    closed: Duration,
    /// From then until the last of its duties had started elsewhere.
    running: Duration,
}

impl std::fmt::Display for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { duties, closed, running } = self;
        write!(f, "closed after {closed:?}, its {duties} duties ran elsewhere {running:?} later")
    }
}

impl Fleet {
    fn start(url: &str, duties: usize, nodes: usize) -> Result<Self> {
        let cluster = format!("duties-{duties}-{}", clock::now().as_nanos());
        let mut hands = Vec::new();
        for number in 0..nodes {
            let name = format!("node-{number}");
            hands.push(Partner::start(&["hand", url, &cluster, &name, &duties.to_string()])?);
        }
        for hand in &mut hands {
            ensure!(hand.answer()? == "joined", "not all nodes joined");
        }
        Ok(Self { cluster, hands, joined: clock::now() })
    }

    /// How many duties each node runs, and when the last of all started.
    fn count(&mut self) -> Result<(Vec<usize>, Moment)> {
        let mut counts = Vec::new();
        let mut last = Moment::START;
        for hand in &mut self.hands {
            let answer = hand.ask("count")?;
            let (count, at) = answer.split_once(' ').context("no two numbers")?;
            counts.push(count.parse()?);
            last = last.max(Moment::from_nanos(at.parse()?));
        }
        Ok((counts, last))
    }

    fn await_counts(&mut self, what: &str, done: impl Fn(&[usize]) -> bool) -> Result<Moment> {
        let began = clock::now();
        loop {
            let (counts, last) = self.count()?;
            if done(&counts) {
                return Ok(last);
            }
            ensure!(clock::now().since(began) < PATIENCE, "{what}: {counts:?}");
            pause(Duration::from_millis(100));
        }
    }

    fn await_all(&mut self, duties: usize) -> Result<Duration> {
        let all = |counts: &[usize]| counts.iter().sum::<usize>() == duties;
        let last = self.await_counts("not all started", all)?;
        Ok(last.since(self.joined))
    }

    /// Waits until all nodes have their share, and for reports and views to settle.
    fn await_even(&mut self, duties: usize) -> Result<()> {
        let share = duties / self.hands.len();
        let even = |counts: &[usize]| {
            counts.iter().sum::<usize>() == duties && counts.iter().all(|count| *count >= share)
        };
        self.await_counts("not even", even)?;
        pause(Duration::from_secs(20));
        Ok(())
    }

    async fn lose_one(mut self, store: &OpenStore, duties: usize) -> Result<Recovery> {
        let cluster = Cluster::new(store.clone(), &self.cluster)?;
        let leader = cluster.leader("incumbent/leader").await?.context("nobody leads")?;
        let name = |number: usize| format!("node-{number}");
        let victim = (0..self.hands.len())
            .find(|number| name(*number) != leader.node)
            .context("there is no follower")?;
        let (counts, _) = self.count()?;
        let lost = counts.get(victim).copied().context("no such node")?;
        let killed = clock::now();
        drop(self.hands.remove(victim));
        let closed = await_closed(&cluster, &name(victim)).await?;
        let all = |counts: &[usize]| counts.iter().sum::<usize>() == duties;
        let last = self.await_counts("not all recovered", all)?;
        Ok(Recovery { duties: lost, closed: closed.since(killed), running: last.since(closed) })
    }
}

/// When a node's member was seen closed, to some milliseconds.
async fn await_closed(cluster: &Cluster, node: &str) -> Result<Moment> {
    let began = clock::now();
    loop {
        let members = cluster.members().await?;
        if !members.iter().any(|member| member.node == node && member.is_alive()) {
            return Ok(clock::now());
        }
        ensure!(clock::now().since(began) < PATIENCE, "{node} was not closed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
