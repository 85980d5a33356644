//! `incumbent evict NODE`: throws a member out.

use clap::Args;
use incumbent::{Cluster, MemberId, Moment, clock};
use serde_json::{Value, json};

use crate::exit::{Failure, Outcome};
use crate::json;
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::steer::{self, Ending, Patience};
use crate::style::GOOD;
use crate::whom;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
The member's next beat fails and it stops everything. Its leases are free as soon as it says so,
and after its ttl in any case. A program joins again by itself: stop it first if it should not. Under
`incumbent run` the command ends, and it contends again only if it was started with --restart.

Examples:
  incumbent evict billing-2
  incumbent evict 3f9a12c4     # a member's id, if two nodes share a name";

/// Who is thrown out.
#[derive(Args, Debug)]
pub(crate) struct EvictArguments {
    /// The node's name, or the member's id or its beginning
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    patience: Patience,
}

/// What became of one of its leases.
struct Fate {
    lease: String,
    ending: Ending,
    since: Moment,
    until: Moment,
}

/// Throws it out, waits for its leases, and says what happened.
pub(crate) async fn run(session: &Session, arguments: &EvictArguments) -> Outcome {
    let cluster = session.place.cluster_to_change().await?;
    let member = whom::find(&cluster, &arguments.node).await?;
    let id = cluster.evict(member.id.as_str()).await?;
    let fates = wait(&cluster, &id, &arguments.patience).await?;
    if session.json {
        session.print_json(&json!({
            "evicted": &member,
            "leases": fates.iter().map(fate_json).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    let node = plain(&member.node);
    say!("{node} was evicted (member {id})");
    for fate in &fates {
        let (lease, took) = (plain(&fate.lease), span::text(fate.until.since(fate.since)));
        match &fate.ending {
            Ending::Led(next, _) => {
                let (who, term) = (plain(&next.node), next.term);
                say!("{GOOD}{who} leads{GOOD:#} {lease} in term {term}, after {took}")
            }
            Ending::Free(_) => say!("{lease} is free, and nobody has taken it yet"),
        };
    }
    session.remark(
        "A program joins again by itself unless you stop it; `incumbent run` ends its command, and \
         contends again only with --restart.",
    );
    Ok(())
}

async fn wait(cluster: &Cluster, id: &MemberId, patience: &Patience) -> Outcome<Vec<Fate>> {
    let since = clock::now();
    let mut fates = Vec::new();
    for state in cluster.leases().await? {
        let Some(leader) = state.leader.filter(|leader| leader.member == *id) else { continue };
        let ending = steer::until_over(cluster, &state.lease, &leader, patience).await;
        let ending = ending.map_err(|failure| {
            let said = format!("the member {id} was evicted, but {}", failure.message);
            Failure::new(failure.code, said)
        })?;
        fates.push(Fate { lease: state.lease, ending, since, until: clock::now() });
    }
    Ok(fates)
}

fn fate_json(fate: &Fate) -> Value {
    let leader = match &fate.ending {
        Ending::Led(next, _) => Some(next),
        Ending::Free(_) => None,
    };
    let took = json::millis(fate.until.since(fate.since));
    json!({ "lease": fate.lease, "leader": leader, "took_ms": took })
}
