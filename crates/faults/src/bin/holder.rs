//! A process that holds slots by turns and writes down what it is told about each, in a file of
//! its own for each, until its standard input ends. It prints the number of each slot that it gets.
//!
//! `holder URL NODE DIRECTORY COUNT`

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::blocking::Wait;
use incumbent::{Slot, clock};
use incumbent_proving::{Entry, Loss, ask};

/// From one question to the next.
const PAUSE: Duration = Duration::from_millis(2);
/// How often it asks before it gives a slot back.
const QUESTIONS: u64 = 60;
/// How long it waits before it looks whether it shall end.
const PATIENCE: Duration = Duration::from_millis(500);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: holder URL NODE DIRECTORY COUNT");
    let (url, name, directory, count) = (next()?, next()?, next()?, next()?.parse()?);
    let builder = incumbent::Node::builder().for_tests().cluster("faults").name(&name);
    let node = builder.join(incumbent::open(&url).wait()?).wait()?;
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        told.store(true, Ordering::SeqCst);
    });
    let slots = node.slots("slots", count)?;
    while !over.load(Ordering::SeqCst) {
        if let Some(slot) = slots.acquire_within(PATIENCE).wait()? {
            println!("{}", slot.index());
            hold(&slot, &Path::new(&directory).join(format!("{name}.{}", slot.index())))?;
        }
    }
    node.leave().wait()?;
    Ok(())
}

/// Asks again and again until it was asked often enough, or an answer is no.
fn hold(slot: &Slot, file: &Path) -> Result<()> {
    let mut log = OpenOptions::new().create(true).append(true).open(file)?;
    let mut write = |entry: Entry| -> Result<()> {
        // One line, in one write, so that nothing is lost when the process is killed.
        Ok(log.write_all(format!("{entry}\n").as_bytes())?)
    };
    write(Entry::Elected { at: clock::now().as_nanos(), term: slot.number() })?;
    for _ in 0..QUESTIONS {
        if !ask(slot, &mut write)? {
            let (at, term) = (clock::now().as_nanos(), slot.number());
            return write(Entry::Lost { at, term, why: Loss::Other });
        }
        std::thread::park_timeout(PAUSE);
    }
    Ok(())
}
