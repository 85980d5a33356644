//! How long plans take where they are hard to make. `cargo bench -p incumbent-planner`; a number
//! given as argument is the number of nodes, and a word selects cases.
#![allow(clippy::indexing_slicing, reason = "situations are built by index")]
#![allow(clippy::disallowed_methods, reason = "time is what is measured")]

#[allow(unreachable_pub, reason = "tests use it too")]
#[path = "../tests/common/hard.rs"]
mod hard;

use std::time::Instant;

use incumbent_planner::mutant::PlantedInPlan;
use incumbent_planner::plan_within;

const NODES: usize = 200;
const ROUNDS: usize = 3;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let nodes = arguments.iter().find_map(|it| it.parse().ok()).unwrap_or(NODES);
    let word = arguments.iter().find(|it| it.parse::<usize>().is_err());
    println!("{} duties on {nodes} nodes, the fastest of {ROUNDS}", nodes * hard::EACH);
    println!(
        "{:<46} {:>8} {:>8} {:>8} {:>8} {:>8} even",
        "", "ms", "cpu ms", "steps", "placed", "moves"
    );
    for (name, case) in hard::ALL {
        if word.is_some_and(|word| !name.contains(word.as_str())) {
            continue;
        }
        let situation = case(nodes);
        let (mut wall, mut cpu) = (f64::INFINITY, f64::INFINITY);
        let (mut made, mut steps) = plan_within(&situation, PlantedInPlan::default(), None);
        for _ in 0..ROUNDS {
            let (began, before) = (on_cpu(), Instant::now());
            (made, steps) = plan_within(&situation, PlantedInPlan::default(), None);
            wall = wall.min(before.elapsed().as_secs_f64() * 1e3);
            cpu = cpu.min(on_cpu() - began);
        }
        let placed = made.target.iter().flatten().count();
        let (moves, even) = (made.moves.len(), made.balanced);
        println!("{name:<46} {wall:>8.1} {cpu:>8.1} {steps:>8} {placed:>8} {moves:>8} {even}");
    }
}

/// How many milliseconds this thread has run: on a busy machine that says more. Linux only.
fn on_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or(f64::NAN) / 1e6
}
