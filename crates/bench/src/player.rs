//! One of the two processes of a hand-over. It does what its standard input says, and stamps what
//! happened with CLOCK_BOOTTIME, which both processes share.

use std::io::BufRead;

use anyhow::{Context as _, Result};
use incumbent::blocking::Wait;
use incumbent::{Campaign, Leadership};
use incumbent::{Node, clock};

pub(crate) fn play(url: &str, cluster: &str, node: &str) -> Result<()> {
    let store = incumbent::open(url).wait()?;
    // The ttl is so long that nothing but a hint makes a hand-over quick. Whether nodes give each other
    // any is left to the environment, to compare the two.
    let hints =
        |variable: &str| std::env::var(variable).ok().filter(|_| variable == "INCUMBENT_HINTS");
    let builder = Node::builder().from_lookup(hints)?.cluster(cluster).name(node);
    let node = builder.without_membership().join(store).wait()?;
    println!("ready");
    let mut campaign: Option<Campaign> = None;
    let mut held: Option<Leadership> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            // Takes a lease that nobody has, and gives it up again.
            ("take", lease) => {
                let before = clock::now();
                let mut campaign = node.campaign(lease)?;
                let leadership = campaign.elected().wait()?;
                let took = clock::now().since(before);
                drop(campaign);
                // Freed before the next is asked for, which would wait behind it.
                leadership.release().wait()?;
                println!("{}", took.as_nanos());
            }
            // Stands for a lease; the answer to `wait` comes when it leads.
            ("stand", lease) => {
                campaign = Some(node.campaign(lease)?);
                println!("standing");
            }
            ("wait", _) => {
                held = Some(campaign.as_mut().context("nothing to wait for")?.elected().wait()?);
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
    node.leave().wait()?;
    Ok(())
}
