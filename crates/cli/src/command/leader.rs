//! `incumbent leader NAME`: who leads and where it can be reached.

use clap::Args;
use incumbent::{Leader, LeaseState, MemberState};
use serde_json::json;

use crate::exit::{Failure, Outcome};
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::style::{DIM, GOOD};
use crate::when;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Exits with 0 if somebody leads, and with 1 if nobody does. A leader that was evicted, or that has
sent no beat for longer than its ttl by the store's clock, counts as nobody.

Examples:
  incumbent leader scheduler
  incumbent leader scheduler -q              # the node's name alone
  incumbent leader scheduler --json | jq -r .leader.address";

/// Which lease.
#[derive(Args, Debug)]
pub(crate) struct LeaderArguments {
    /// The lease
    #[arg(value_name = "NAME")]
    lease: String,
}

/// Prints who leads.
pub(crate) async fn run(session: &Session, arguments: &LeaderArguments) -> Outcome {
    let cluster = session.place.cluster().await?;
    let state = cluster.lease(&arguments.lease).await?;
    let leader = state.leader.as_ref().filter(|leader| leads(leader));
    if session.json {
        session.print_json(&json!({
            "cluster": session.place.cluster,
            "lease": state.lease,
            "term": state.term,
            "leader": leader,
        }));
        return leader.map(|_| ()).ok_or_else(Failure::said);
    }
    let Some(leader) = leader else { return Err(nobody(&cluster, &state).await?) };
    let (node, lease) = (plain(&leader.node), plain(&state.lease));
    if session.quiet {
        say!("{node}");
        return Ok(());
    }
    let address = leader.address.as_deref().map(|it| format!(" at {}", plain(it)));
    let since = leader.since_ms.map(|at| format!(", for {}", when::passed(at)));
    let (address, since) = (address.unwrap_or_default(), since.unwrap_or_default());
    let term = leader.term;
    say!("{GOOD}{node}{GOOD:#}{address} leads {lease} {DIM}(term {term}{since}){DIM:#}");
    if let Some(payload) = &leader.payload {
        say!("{}", plain(payload));
    }
    Ok(())
}

fn leads(leader: &Leader) -> bool {
    leader.state == MemberState::Alive && !leader.is_overdue()
}

async fn nobody(cluster: &incumbent::Cluster, state: &LeaseState) -> Outcome<Failure> {
    let lease = &state.lease;
    let said = match &state.leader {
        Some(leader) if leader.state == MemberState::Alive => format!(
            "nobody leads {lease}: {} holds it (term {}) but was last heard of {} ago, which is \
             more than its ttl of {}, and nobody who waits for it has taken over",
            plain(&leader.node),
            leader.term,
            span::text(leader.age.unwrap_or_default()),
            span::setting(leader.ttl),
        ),
        Some(leader) => format!(
            "nobody leads {lease}: {} was evicted, and the lease is free when its ttl of {} has \
             passed or it says that it has stopped",
            plain(&leader.node),
            span::setting(leader.ttl),
        ),
        None if state.term > 0 => format!("nobody leads {lease}; its last term was {}", state.term),
        None => {
            let leases = cluster.leases().await?;
            let known: Vec<String> = leases.iter().map(|state| plain(&state.lease)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let cluster = cluster.name();
            format!(
                "nobody has ever led {lease:?} in the cluster {cluster:?}; its leases are: {known}"
            )
        }
    };
    Ok(Failure::wrong(said))
}
