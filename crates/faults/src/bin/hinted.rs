//! A process that does what its standard input says, takes hints as the environment says, and stamps what
//! happened with CLOCK_BOOTTIME, which all processes of a machine share.
//!
//! `hinted URL CLUSTER NODE`
//!
//! `stand LEASE` stands for a lease, and prints `elected MOMENT` when it leads; `release` gives it up and
//! prints `released MOMENT`; `count` prints how many hints were taken and dropped and how many exchanges
//! with the store there were; `member` prints its id. At the end of its input it leaves.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::blocking::Wait;
use incumbent::{Campaign, Node, clock};

/// From one question whether it leads to the next.
const LOOK: Duration = Duration::from_millis(1);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: hinted URL CLUSTER NODE");
    let (url, cluster, name) = (next()?, next()?, next()?);
    let builder = Node::builder().from_env()?.cluster(cluster).name(name).without_membership();
    let node = builder.join(incumbent::open(&url).wait()?).wait()?;
    println!("joined");
    let mut release: Option<Sender<()>> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("stand", lease) => {
                let campaign = node.campaign(lease)?;
                let (sender, told) = channel();
                release = Some(sender);
                std::thread::spawn(move || lead(campaign, &told));
            }
            ("release", _) => drop(release.take()),
            ("count", _) => println!("{}", counted(&node)),
            ("member", _) => println!("{}", node.member().context("no member")?),
            _ => anyhow::bail!("{line} is no order"),
        }
    }
    println!("leaving {}", clock::now().as_nanos());
    drop(release);
    node.leave().wait()?;
    Ok(())
}

/// Leads until it is told to give up, and stands for the lease no more.
fn lead(mut campaign: Campaign, told: &Receiver<()>) {
    let Ok(leadership) = campaign.elected().wait() else { return };
    println!("elected {}", clock::now().as_nanos());
    // Until it is told here or through the store.
    while leadership.is_held() && told.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {}
    let before = clock::now().as_nanos();
    drop(campaign);
    drop(leadership);
    println!("released {before}");
}

fn counted(node: &Node) -> String {
    let metrics = node.metrics();
    let exchanges: u64 = metrics.store.iter().map(|store| store.latency.count).sum();
    format!("{} {} {exchanges}", metrics.hints, metrics.hints_dropped)
}
