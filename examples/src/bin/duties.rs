//! Background work that is spread over all nodes.
//!
//! Run two or three side by side, each in a terminal of its own, and stop one with Ctrl-C: the
//! others take over what it ran.
//!
//! ```sh
//! INCUMBENT_NODE=a cargo run -p incumbent-examples --bin duties
//! INCUMBENT_NODE=b cargo run -p incumbent-examples --bin duties
//! ```

use std::time::Duration;

use incumbent::{Duty, DutyDescription, Node, family};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = incumbent::open("sqlite:app.db").await?;
    let node = Node::builder().cluster("billing").join(store).await?; // named by INCUMBENT_NODE
    let name = node.name().to_owned();

    // All duties there are, cluster-wide. One that is heavy counts for three.
    let mut duties: Vec<DutyDescription> =
        ["customers", "invoices", "payments", "returns", "stock"].map(Into::into).into();
    duties.push(DutyDescription::named("orders").weight(3));

    let projections =
        family("projection").duties(duties).grace(Duration::from_secs(5)).run_with(name, project);
    let serving = node.serve(projections)?;

    tokio::signal::ctrl_c().await?;
    println!("{} runs {} duties and leaves", node.name(), serving.running());
    node.leave().await?; // duties are told to stop, and run elsewhere when they have
    Ok(())
}

/// Runs on one node at a time. What it writes carries the fence.
async fn project(node: String, duty: Duty) -> Result<(), incumbent::BoxError> {
    println!("{node}: {} starts under fence {}", duty.name(), duty.fence());
    let mut events = 0;
    let stopping = duty.token();
    while !stopping.is_cancelled() {
        events += 10;
        duty.progress(format!("{events} events"));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = stopping.cancelled() => {}
        }
    }
    println!("{node}: {} stops after {events} events", duty.name());
    Ok(())
}
