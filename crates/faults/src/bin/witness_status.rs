//! Says how the witness of this process fares, once that is known.
//!
//! `witness_status`: without calling `init`. `witness_status init`: with it. The witness itself is
//! started without arguments, so that it doesn't get there, as in a program that calls `init`
//! behind a flag. `WITNESS_FIRST` in the environment makes the call unconditional.

use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::Node;
use incumbent::blocking::Wait;
use incumbent::witness::{self, Status};

fn main() -> Result<()> {
    let asked = std::env::args().nth(1).is_some_and(|mode| mode == "init");
    if asked || std::env::var_os("WITNESS_FIRST").is_some() {
        witness::init().context("a witness")?;
    }
    if let Some(url) = std::env::var_os("WITNESS_JOINS") {
        // What a program does that is started a second time by mistake.
        let url = url.into_string().ok().context("a URL")?;
        let joined = Node::builder().cluster("twice").join(incumbent::open(&url).wait()?).wait();
        if !asked {
            std::mem::forget(joined?);
        }
    }
    while witness::status() == Status::Starting {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    println!("{:?}", witness::status());
    if !asked {
        // As long as a program may run.
        std::thread::park_timeout(Duration::from_secs(600));
    }
    Ok(())
}
