//! One of the two processes of a hand-over. It does what its standard input says, and stamps what
//! happened with CLOCK_BOOTTIME, which both processes share.

use std::io::BufRead;

use anyhow::{Context as _, Result};
use incumbent::blocking::{self, Campaign, Leadership};
use incumbent::{Node, clock};

pub(crate) fn play(url: &str, node: &str) -> Result<()> {
    let store = blocking::open(url)?;
    // The ttl is so long that nothing but a push makes a hand-over quick.
    let node =
        blocking::join(Node::builder().cluster("bench").name(node).membership(false), store)?;
    println!("ready");
    let mut campaign: Option<Campaign> = None;
    let mut held: Option<Leadership> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            // Stands for a lease; the answer to `wait` comes when it leads.
            ("stand", lease) => {
                campaign = Some(node.campaign(lease)?);
                println!("standing");
            }
            ("wait", _) => {
                held = Some(campaign.as_mut().context("nothing to wait for")?.elected()?);
                println!("{}", clock::now().as_nanos());
            }
            ("free", _) => {
                let before = clock::now().as_nanos();
                drop(held.take());
                drop(campaign.take());
                println!("{before}");
            }
            _ => break,
        }
    }
    node.leave()?;
    Ok(())
}
