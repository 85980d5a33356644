//! A process with a witness that leads a lease until it is killed. It says on its standard output
//! when it leads.
//!
//! `witnessed URL [DIRECTORY]`: with a directory it goes there once it has its witness.

use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::blocking::Wait;
use incumbent::{Node, witness};

fn main() -> Result<()> {
    witness::init().context("a witness")?;
    let url = std::env::args().nth(1).context("usage: witnessed URL [DIRECTORY]")?;
    if let Some(directory) = std::env::args().nth(2) {
        std::env::set_current_dir(directory)?;
    }
    // Nobody in the test waits so long.
    let builder = Node::builder().cluster("witness").name("witnessed").ttl(Duration::from_secs(90));
    let node = builder.join(incumbent::open(&url).wait()?).wait()?;
    let mut campaign = node.campaign("lease")?;
    let leadership = campaign.elected().wait()?;
    println!("{}", leadership.number());
    loop {
        std::thread::park();
    }
}
