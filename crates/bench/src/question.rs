//! The question "do I lead?" against a bare read of the same clock.

use std::hint::black_box;

use anyhow::Result;
use incumbent::blocking::Wait;
use incumbent::{Node, clock};
use rustix::time::{ClockId, clock_gettime};

use crate::allocations;
use crate::report::Report;
use crate::spread::Spread;

const BATCHES: usize = 500;
const CALLS: u32 = 2_000;

pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let node = Node::builder().join(incumbent::open("solo:").wait()?).wait()?;
    let mut campaign = node.campaign("question")?;
    let leadership = campaign.elected().wait()?;
    let term = leadership.term();
    let (mut bare, mut held, mut named) = (Vec::new(), Vec::new(), Vec::new());
    // One batch of each in turn, so that whatever the machine does meets all of them.
    for _ in 0..BATCHES {
        bare.push(time(|| {
            black_box(clock_gettime(ClockId::Boottime).tv_nsec);
        }));
        held.push(time(|| {
            black_box(term.is_held());
        }));
        named.push(time(|| {
            black_box(node.is_leader("question"));
        }));
    }
    let allocated = allocations::during(|| {
        for _ in 0..CALLS {
            black_box(term.is_held());
            black_box(node.is_leader("question"));
        }
    });
    anyhow::ensure!(term.is_held(), "the lease was lost, so a no was measured instead of a yes");
    let (bare, held, named) = (Spread::new(bare), Spread::new(held), Spread::new(named));
    report.add("clock_ns", "bare read of CLOCK_BOOTTIME, median", bare.median(), "ns");
    report.add("held_ns", "Term::is_held(), median", held.median(), "ns");
    let ratio = held.median() / bare.median();
    report.add_with_goal("held_ratio", "  against the bare read", ratio, "x", "1.2 or less");
    let ratio = named.median() / bare.median();
    report.add("named_ratio", "Node::is_leader(name) against the bare read", ratio, "x");
    let allocated = allocated as f64;
    report.add_with_goal("held_allocations", "allocations in 4,000 questions", allocated, "", "0");
    drop((leadership, campaign));
    node.leave().wait()?;
    Ok(())
}

/// Nanoseconds a call.
fn time(mut call: impl FnMut()) -> f64 {
    let before = clock::now();
    for _ in 0..CALLS {
        call();
    }
    clock::now().since(before).as_nanos() as f64 / f64::from(CALLS)
}
