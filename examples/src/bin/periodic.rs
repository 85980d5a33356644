//! A job that runs once per tick, on whichever node leads it.
//!
//! Run two side by side, each in a terminal of its own, and stop the one that reports with Ctrl-C:
//! the other goes on with the next tick, and none is reported twice.
//!
//! ```sh
//! INCUMBENT_NODE=a cargo run -p incumbent-examples --bin periodic
//! INCUMBENT_NODE=b cargo run -p incumbent-examples --bin periodic
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use incumbent::{CatchUp, Node, Run, Schedule};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = incumbent::open("sqlite:app.db").await?;
    let node = Node::builder().cluster("billing").join(store).await?; // named by INCUMBENT_NODE
    let name = node.name().to_owned();

    // With the feature `cron`: Schedule::cron("0 3 * * *")?, for three o'clock each night, UTC.
    let schedule = Schedule::every(Duration::from_secs(2))
        // Ticks that nobody ran, because all were down, get a run each: the last ten of them.
        .catch_up(CatchUp::Each { most: 10 });
    let _reports = node.periodic("report", schedule, move |run| report(name.clone(), run))?;

    tokio::signal::ctrl_c().await?;
    node.leave().await?; // a run that is under way may end, and another node takes over
    Ok(())
}

/// One tick. An error or a panic means that it is not done, and is tried again.
async fn report(node: String, run: Run) -> Result<(), incumbent::BoxError> {
    let tick = seconds(run.scheduled())?;
    // What is written carries the fence and the tick, so that it can be refused if it is late or
    // there already.
    println!("{node}: report of {tick} under fence {}", run.fence());
    run.complete(); // even if it was told to stop meanwhile
    Ok(())
}

fn seconds(time: SystemTime) -> Result<u64, incumbent::BoxError> {
    Ok(time.duration_since(UNIX_EPOCH)?.as_secs())
}
