//! Many nodes on one PostgreSQL, in few processes, at the default ttl: what the server does for
//! them, and that it loses none of them.

mod crew;
mod punctual;
pub(crate) mod server;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use incumbent::{Cluster, OpenStore, clock};
use tokio_postgres::Client;

pub(crate) use self::crew::crew;
use self::server::Load;
use crate::partner::Partner;

/// How many, and for how long.
#[derive(Args, Debug)]
pub(crate) struct FleetArguments {
    /// How many nodes; may be given several times.
    #[arg(long, value_name = "N", default_values_t = [10, 100, 1000])]
    nodes: Vec<usize>,
    /// In how many processes.
    #[arg(long, default_value_t = 4, value_name = "N")]
    processes: usize,
    /// For how many seconds they are watched.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u64,
}

/// How long members may take until all of them are seen.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) fn measure(arguments: &FleetArguments) -> Result<()> {
    let url = std::env::var("INCUMBENT_TEST_POSTGRES")
        .context("INCUMBENT_TEST_POSTGRES names no server")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let client = runtime.block_on(server::connect(&url))?;
    let store = runtime.block_on(incumbent::open(&url))?;
    println!(
        "| nodes | server CPU, of one core | statements a second | rows read a second \
         | rows written a second |\n| --- | --- | --- | --- | --- |"
    );
    for &nodes in &arguments.nodes {
        let fleet = Fleet::start(&url, nodes, arguments.processes)?;
        let watching = fleet.watch(&client, &store, Duration::from_secs(arguments.seconds));
        let load = runtime.block_on(watching)?;
        fleet.end()?;
        println!("| {nodes} | {load} |");
    }
    Ok(())
}

/// All nodes.
pub(crate) struct Fleet {
    cluster: String,
    nodes: usize,
    ships: Vec<Partner>,
}

impl Fleet {
    pub(crate) fn start(url: &str, nodes: usize, processes: usize) -> Result<Self> {
        let cluster = format!("fleet-{nodes}-{}", clock::now().as_nanos());
        let processes = processes.clamp(1, nodes.max(1));
        let mut ships = Vec::new();
        for number in 0..processes {
            let crew = nodes / processes + usize::from(number < nodes % processes);
            ships.push(Partner::start(&["crew", url, &cluster, &crew.to_string()])?);
        }
        for ship in &mut ships {
            ensure!(ship.answer()? == "joined", "not all nodes joined");
        }
        Ok(Self { cluster, nodes, ships })
    }

    /// The load of the server while nothing happens but beats. Fails if anything else did.
    async fn watch(&self, client: &Client, store: &OpenStore, window: Duration) -> Result<Load> {
        let cluster = self.cluster(store)?;
        self.settle(&cluster, Duration::from_secs(30)).await?;
        let leader = leader(&cluster).await?;
        let before = Load::read(client).await?;
        tokio::time::sleep(window).await;
        let load = Load::read(client).await?.since(&before);
        ensure!(self::leader(&cluster).await? == leader, "the leader changed");
        let alive = cluster.members().await?.iter().filter(|member| member.is_alive()).count();
        ensure!(alive == self.nodes, "{alive} of {} members are alive", self.nodes);
        Ok(load)
    }

    /// Its cluster, as somebody who looks on sees it.
    pub(crate) fn cluster(&self, store: &OpenStore) -> Result<Cluster> {
        Ok(Cluster::new(store.clone(), &self.cluster)?)
    }

    /// How late beats were since this was last asked, in milliseconds.
    pub(crate) fn late(&mut self) -> Result<Vec<f64>> {
        let mut late = Vec::new();
        for ship in &mut self.ships {
            let answer = ship.ask("late")?;
            for micros in answer.split(' ').skip(1) {
                late.push(micros.parse::<f64>()? / 1000.0);
            }
        }
        Ok(late)
    }

    /// Waits until there is a leader, and all members are there for so long.
    pub(crate) async fn settle(&self, cluster: &Cluster, still: Duration) -> Result<()> {
        let began = clock::now();
        loop {
            let alive = cluster.members().await?.iter().filter(|it| it.is_alive()).count();
            if alive == self.nodes && leader(cluster).await.is_ok() {
                break;
            }
            ensure!(clock::now().since(began) < PATIENCE, "{alive} of {} joined", self.nodes);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // Views are written and read, and the brackets around beats are narrow.
        tokio::time::sleep(still).await;
        Ok(())
    }

    /// Ends all, and fails if one was lost before.
    pub(crate) fn end(mut self) -> Result<()> {
        for ship in &mut self.ships {
            let lost = ship.ask("lost")?;
            ensure!(lost == "0", "{lost} nodes lost their membership");
        }
        for ship in &mut self.ships {
            ship.ask("leave")?;
        }
        Ok(())
    }
}

/// Who leads the cluster, and in which term.
pub(crate) async fn leader(cluster: &Cluster) -> Result<(String, u64)> {
    let leader = cluster.leader("incumbent/leader").await?.context("nobody leads")?;
    Ok((leader.member.to_string(), leader.term))
}
