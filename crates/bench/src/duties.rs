//! Many duties on a few nodes of one PostgreSQL, each node a process: how soon all of them run, how
//! soon the duties of a node that is killed run elsewhere, and what they cost while nothing happens.

mod hand;

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use incumbent::{Cluster, Moment, OpenStore, clock};

pub(crate) use self::hand::hand;
use crate::fleet::server::{self, Load};
use crate::partner::{Partner, pause};

/// How nodes live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) ttl: Duration,
    /// Whether a helper process sees their end.
    pub(crate) witness: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(15), witness: false }
    }
}

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
        let mut fleet = Fleet::start(&url, duties, arguments.nodes, Manner::default())?;
        let started = fleet.await_all(duties)?;
        fleet.await_even(duties, Duration::from_secs(20))?;
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

pub(crate) struct Fleet {
    cluster: String,
    hands: Vec<Hand>,
    joined: Moment,
}

/// A node in a process of its own.
struct Hand {
    name: String,
    partner: Partner,
}

/// What runs at a moment.
struct Tally {
    /// How many duties each node runs.
    running: Vec<usize>,
    /// When the last of all started.
    last: Moment,
    /// How many have started on these nodes since they began.
    started: usize,
}

/// What became of the duties of a node that was killed.
pub(crate) struct Recovery {
    pub(crate) duties: usize,
    /// From the kill until the member was closed.
    pub(crate) closed: Duration,
    /// From the kill until the last of its duties had started elsewhere.
    pub(crate) running: Duration,
    /// How many duties started anywhere until then.
    pub(crate) moves: usize,
}

impl std::fmt::Display for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { duties, closed, running, .. } = self;
        let later = running.saturating_sub(*closed);
        write!(f, "closed after {closed:?}, its {duties} duties ran elsewhere {later:?} later")
    }
}

impl Fleet {
    pub(crate) fn start(url: &str, duties: usize, nodes: usize, manner: Manner) -> Result<Self> {
        let cluster = format!("duties-{duties}-{}", clock::now().as_nanos());
        let mut hands = Vec::new();
        let ttl = manner.ttl.as_millis().to_string();
        for number in 0..nodes {
            let name = format!("node-{number}");
            let count = duties.to_string();
            let mut arguments = vec!["hand", url, &cluster, &name, &count, &ttl];
            if manner.witness {
                arguments.push("--witness");
            }
            let partner = Partner::start(&arguments)?;
            hands.push(Hand { name, partner });
        }
        for hand in &mut hands {
            ensure!(hand.partner.answer()? == "joined", "not all nodes joined");
        }
        Ok(Self { cluster, hands, joined: clock::now() })
    }

    /// The processes of its nodes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.hands.iter().map(|hand| hand.partner.id()).collect()
    }

    fn count(&mut self) -> Result<Tally> {
        let mut tally = Tally { running: Vec::new(), last: Moment::START, started: 0 };
        for hand in &mut self.hands {
            let answer = hand.partner.ask("count")?;
            let numbers: Vec<u64> = answer
                .split(' ')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .context("no numbers")?;
            let [running, last, started] = numbers[..] else { bail!("{answer} instead of three") };
            tally.running.push(usize::try_from(running)?);
            tally.last = tally.last.max(Moment::from_nanos(last));
            tally.started += usize::try_from(started)?;
        }
        Ok(tally)
    }

    fn await_counts(&mut self, what: &str, done: impl Fn(&[usize]) -> bool) -> Result<Tally> {
        let began = clock::now();
        loop {
            let tally = self.count()?;
            if done(&tally.running) {
                return Ok(tally);
            }
            ensure!(clock::now().since(began) < PATIENCE, "{what}: {:?}", tally.running);
            pause(Duration::from_millis(100));
        }
    }

    pub(crate) fn await_all(&mut self, duties: usize) -> Result<Duration> {
        let all = |counts: &[usize]| counts.iter().sum::<usize>() == duties;
        let tally = self.await_counts("not all started", all)?;
        Ok(tally.last.since(self.joined))
    }

    /// Waits until all nodes have their share, and for so long until reports and views have settled.
    pub(crate) fn await_even(&mut self, duties: usize, settle: Duration) -> Result<()> {
        let share = duties / self.hands.len();
        let even = |counts: &[usize]| {
            counts.iter().sum::<usize>() == duties && counts.iter().all(|count| *count >= share)
        };
        self.await_counts("not even", even)?;
        pause(settle);
        Ok(())
    }

    /// Kills a node that doesn't lead the cluster.
    pub(crate) async fn lose_one(&mut self, store: &OpenStore, duties: usize) -> Result<Recovery> {
        let cluster = Cluster::new(store.clone(), &self.cluster)?;
        let leader = cluster.leader("incumbent/leader").await?.context("nobody leads")?;
        let follower = self.hands.iter().position(|hand| hand.name != leader.node);
        let follower = follower.context("there is no follower")?;
        let before = self.count()?;
        let lost = before.running.get(follower).copied().context("no such node")?;
        let victim = self.hands.remove(follower);
        let before = self.count()?.started;
        let name = victim.name.clone();
        let killed = clock::now();
        drop(victim);
        let closed = await_closed(&cluster, &name).await?;
        let all = |counts: &[usize]| counts.iter().sum::<usize>() == duties;
        let after = self.await_counts("not all recovered", all)?;
        Ok(Recovery {
            duties: lost,
            closed: closed.since(killed),
            running: after.last.since(killed),
            moves: after.started - before,
        })
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
