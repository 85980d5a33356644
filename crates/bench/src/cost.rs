//! What nodes cost the server of each store while nothing happens, counted on the way there.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use incumbent::{Builder, Campaign, Leadership, Node, clock};
use incumbent_proving::{Proxy, Traffic};

use crate::counting::Counting;
use crate::stores::kind::Wanted;

/// Which stores, and for how long.
#[derive(Args, Debug)]
pub(crate) struct CostArguments {
    /// Measure only this store; may be given several times.
    #[arg(long, value_name = "STORE")]
    only: Vec<String>,
    /// For how many seconds; a node beats every five.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u64,
    /// How many leases the holder of many has.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    leases: usize,
}

const LEADER: &str = "leader of a cluster of two";

/// What a node does while it is watched.
struct Role {
    what: String,
    /// Those with the same cluster see each other.
    cluster: &'static str,
    membership: bool,
    /// It takes so many leases, or waits for the first.
    leases: usize,
    waits: bool,
}

/// A node with a path of its own.
struct Seat {
    what: String,
    node: Node,
    store: Counting,
    proxy: Proxy,
    _standing: Vec<Campaign>,
    _held: Vec<Leadership>,
}

pub(crate) fn measure(arguments: &CostArguments) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let wanted = Wanted::find(&arguments.only, directory.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for (kind, url) in &wanted.there {
        if url.starts_with("sqlite:") {
            // There is no server; `--only beat` counts what is written to a file.
            continue;
        }
        println!("\n{}, for {} s at a ttl of 15 s:\n", kind.name, arguments.seconds);
        runtime.block_on(one(url, arguments))?;
    }
    wanted.name_missing();
    Ok(())
}

fn roles(leases: usize) -> [Role; 5] {
    let role = |what: &str, cluster, membership, leases, waits| Role {
        what: what.to_owned(),
        cluster,
        membership,
        leases,
        waits,
    };
    [
        role("leader: holds one lease", "one", false, 1, false),
        role("follower: waits for that lease", "one", false, 0, true),
        role(&format!("holder of {leases} leases"), "many", false, leases, false),
        role(LEADER, "two", true, 0, false),
        role("its other member", "two", true, 0, false),
    ]
}

async fn one(url: &str, arguments: &CostArguments) -> Result<()> {
    let run = format!("cost-{}-{}", std::process::id(), clock::now().as_nanos());
    let mut seats = Vec::new();
    for role in roles(arguments.leases) {
        seats.push(Seat::take(url, &run, role).await?);
    }
    // Until views are published and everybody knows everybody.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let leads = seats.iter().filter(|seat| seat.node.leads_cluster()).map(|seat| &*seat.what);
    anyhow::ensure!(leads.eq([LEADER]), "another node leads the cluster");
    let before: Vec<Traffic> = seats.iter().map(|seat| seat.proxy.traffic()).collect();
    seats.iter().for_each(|seat| drop(seat.store.take()));
    tokio::time::sleep(Duration::from_secs(arguments.seconds)).await;
    println!("| node, for each of its beats | requests | bytes up | bytes down |");
    println!("| --- | --- | --- | --- |");
    for (seat, before) in seats.iter().zip(before) {
        let Traffic { requests, bytes_up, bytes_down, .. } = seat.proxy.traffic().since(before);
        let beats = seat.store.take().len() as f64;
        let each = |count: u64| count as f64 / beats;
        let (requests, up, down) = (each(requests), each(bytes_up), each(bytes_down));
        println!("| {} | {requests:.1} | {up:.0} | {down:.0} |", seat.what);
    }
    for seat in seats {
        drop((seat._held, seat._standing));
        seat.node.leave().await?;
    }
    Ok(())
}

impl Seat {
    async fn take(url: &str, run: &str, role: Role) -> Result<Self> {
        anyhow::ensure!(url.contains("127.0.0.1:"), "only paths to this machine are counted on");
        let proxy = Proxy::before(url).await;
        let store = Counting::new(incumbent::open(proxy.url()).await?);
        let builder: Builder = Node::builder()
            .cluster(format!("{run}-{}", role.cluster))
            .name(role.what.replace(' ', "-"));
        let builder = if role.membership { builder } else { builder.without_membership() };
        let node = builder.join(store.clone()).await?;
        let count = role.leases.max(usize::from(role.waits));
        let mut standing = (0..count)
            .map(|number| node.campaign(format!("lease-{number}")))
            .collect::<Result<Vec<_>, _>>()?;
        let mut held = Vec::new();
        for campaign in standing.iter_mut().take(role.leases) {
            let elected = tokio::time::timeout(Duration::from_secs(300), campaign.elected());
            held.push(elected.await.context("a free lease was not taken")??);
        }
        Ok(Self { what: role.what, node, store, proxy, _standing: standing, _held: held })
    }
}
