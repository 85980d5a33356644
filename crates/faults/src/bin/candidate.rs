//! A process that stands for a lease and writes down what it is told, until its standard input
//! ends. `resign` on its standard input makes it give the lease up.
//!
//! `candidate URL NODE FILE`

use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::blocking::{self, Leadership};
use incumbent::{Loss, Term, clock};
use incumbent_faults::{self as faults, Entry};

/// From one question to the next.
const PAUSE: Duration = Duration::from_millis(2);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: candidate URL NODE FILE");
    let (url, node, file) = (next()?, next()?, next()?);
    let mut log = OpenOptions::new().create(true).append(true).open(file)?;
    let store = blocking::open(&url)?;
    let builder = incumbent::Node::builder().for_tests().cluster("faults").name(node);
    let node = blocking::join(builder, store)?;
    let mut campaign = node.campaign("lease")?;
    let (sender, commands) = channel();
    let leaving = node.clone();
    std::thread::spawn(move || listen(&sender, &leaving));
    // An error means that the node has left.
    while let Ok(leadership) = campaign.elected() {
        lead(&leadership, &mut log, &commands)?;
    }
    Ok(())
}

/// Passes on what is asked, and leaves when nothing more will be.
fn listen(commands: &Sender<()>, node: &blocking::Node) {
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        if line.trim() == "resign" {
            let _ = commands.send(());
        }
    }
    let _ = node.leave();
}

/// Asks again and again, and writes down the answers, until one is no.
fn lead(leadership: &Leadership, log: &mut File, commands: &Receiver<()>) -> Result<()> {
    let number = leadership.term();
    write(log, Entry::Elected { at: now(), term: number })?;
    // What was asked of an earlier term is not meant for this one.
    while commands.try_recv().is_ok() {}
    // Whoever started this process follows the elections here.
    println!("{number}");
    loop {
        let before = now();
        let held = leadership.is_held();
        let after = now();
        let until = leadership.deadline().as_nanos();
        write(log, Entry::Asked { before, after, term: number, held, until })?;
        if !held {
            break;
        }
        if commands.recv_timeout(PAUSE).is_ok() {
            Term::resign(leadership);
        }
    }
    let why = match leadership.wait_lost().why {
        Loss::CannotTell => faults::Loss::CannotTell,
        _ => faults::Loss::Other,
    };
    write(log, Entry::Lost { at: now(), term: number, why })
}

/// One line, in one write, so that nothing is lost when the process is killed.
fn write(log: &mut File, entry: Entry) -> Result<()> {
    Ok(log.write_all(format!("{entry}\n").as_bytes())?)
}

fn now() -> u64 {
    clock::now().as_nanos()
}
