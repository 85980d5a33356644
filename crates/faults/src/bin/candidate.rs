//! A process that stands for a lease and writes down what it is told, until its standard input
//! ends. `resign` on its standard input makes it give the lease up; `return` makes it also
//! withdraw and stand again.
//!
//! `candidate URL NODE FILE`

use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Sender, channel};

use anyhow::{Context as _, Result};
use incumbent::Node;
use incumbent::blocking::Wait;
use incumbent_proving::{Entry, Order, stand};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: candidate URL NODE FILE");
    let (url, node, file) = (next()?, next()?, next()?);
    let mut log = OpenOptions::new().create(true).append(true).open(file)?;
    let store = incumbent::open(&url).wait()?;
    let builder = incumbent::Node::builder().for_tests().cluster("faults").name(node);
    let node = builder.join(store).wait()?;
    let (sender, orders) = channel();
    let leaving = node.clone();
    std::thread::spawn(move || listen(&sender, &leaving));
    stand(&node, "lease", &orders, |entry| {
        // One line, in one write, so that nothing is lost when the process is killed.
        log.write_all(format!("{entry}\n").as_bytes())?;
        if let Entry::Elected { term, .. } = entry {
            // Whoever started this process follows the elections here.
            println!("{term}");
        }
        Ok(())
    })
}

/// Passes on what is asked, and leaves when nothing more will be.
fn listen(orders: &Sender<Order>, node: &Node) {
    for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
        let order = match line.trim() {
            "resign" => Order::Resign,
            "return" => Order::Return,
            _ => continue,
        };
        let _ = orders.send(order);
    }
    let _ = node.leave().wait();
}
