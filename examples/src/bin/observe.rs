//! Who leads and who is there, without taking part in any election.
//!
//! Run it beside two of the other examples, in the same directory:
//!
//! ```sh
//! INCUMBENT_NODE=billing-1 cargo run -p incumbent-examples --bin scheduler
//! INCUMBENT_NODE=billing-2 cargo run -p incumbent-examples --bin scheduler
//! INCUMBENT_NODE=watcher cargo run -p incumbent-examples --bin observe
//! ```

use incumbent::{Cluster, Event, LeaseState, Node};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = incumbent::open("sqlite:app.db").await?;

    // From outside: anyone with the store can ask and watch; nothing is written.
    let cluster = Cluster::new(&store, "billing")?;
    for lease in cluster.leases().await? {
        tell(&lease);
    }

    // From inside: a member also hears who comes and goes. It stands for nothing here.
    let node = Node::builder().cluster("billing").join(&store).await?;
    let mut notices = node.subscribe();
    let mut watch = cluster.watch_lease("scheduler")?;
    loop {
        tokio::select! {
            Some(notice) = notices.recv() => match notice.event {
                Event::State(state) => println!("{} members", state.members.len()),
                Event::MemberJoined(member) => println!("{} joined", member.node),
                Event::MemberLeft(member) => println!("{} is {}", member.node, member.state.as_str()),
                other => println!("{other:?}"),
            },
            Some(lease) = watch.recv() => tell(&lease),
            stop = tokio::signal::ctrl_c() => { stop?; break }
        }
    }
    node.leave().await?;
    Ok(())
}

fn tell(lease: &LeaseState) {
    match &lease.leader {
        Some(leader) => println!("{}: {} leads in term {}", lease.lease, leader.node, leader.term),
        None if lease.term == 0 => println!("{}: nobody has ever led", lease.lease),
        None => println!("{}: nobody leads since term {}", lease.lease, lease.term),
    }
}
