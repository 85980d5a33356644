//! A process that stands for many leases with one node, and answers over HTTP which of them it has, until its
//! standard input ends. It prints the lease and the term of each election.
//!
//! `roles URL NODE SOCKET LEASES`

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::{Campaign, Node};
use incumbent_serve::{Address, Listener, Options, Service};
use tokio::runtime::Handle;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: roles URL NODE SOCKET LEASES");
    let (url, node, socket, leases) = (next()?, next()?, next()?, next()?.parse::<usize>()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = incumbent::open(&url).await?;
        let builder = Node::builder().cluster("roles").name(node).ttl(Duration::from_secs(3));
        let node = builder.join(store).await?;
        let service = Service::new(node.clone(), Options::default())?;
        let listener = Listener::bind(&Address::Unix(socket.into()), &service).await?;
        for lease in 0..leases {
            let campaign = node.campaign(format!("lease-{lease}"))?;
            Handle::current().spawn(follow(lease, campaign));
        }
        let ended = async {
            let read =
                tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
            let _ = read.await;
        };
        listener.serve(&service, ended).await;
        Ok(())
    })
}

/// Tells of each election for a lease.
async fn follow(lease: usize, mut campaign: Campaign) {
    while let Ok(leadership) = campaign.elected().await {
        println!("{lease} {}", leadership.number());
        leadership.lost().await;
    }
}
