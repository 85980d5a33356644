//! `incumbent resign NAME`: asks the leader to give a lease up.

use clap::Args;
use incumbent::clock;
use serde_json::json;

use crate::exit::{Failure, Outcome};
use crate::json;
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::steer::{self, Ending, Patience};
use crate::style::GOOD;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
The leader ends its work in order, frees the lease and holds back for a while, so that another can
take it. If nobody else wants the lease, it leads again.

Examples:
  incumbent resign scheduler
  incumbent resign scheduler --timeout 2m";

/// Which lease.
#[derive(Args, Debug)]
pub(crate) struct ResignArguments {
    /// The lease
    #[arg(value_name = "NAME")]
    lease: String,
    #[command(flatten)]
    patience: Patience,
}

/// Asks, waits, and says what happened.
pub(crate) async fn run(session: &Session, arguments: &ResignArguments) -> Outcome {
    let lease = &arguments.lease;
    let cluster = session.place.cluster_to_change().await?;
    let Some(leader) = cluster.leader(lease).await? else {
        return Err(Failure::wrong(format!(
            "nobody leads {lease:?}: there is nothing to give up. `incumbent status` lists the leases"
        )));
    };
    steer::warn_if_overdue(session, &leader);
    let since = clock::now();
    let asked = cluster.request_resign(lease).await?.leader.unwrap_or_else(|| leader.clone());
    session.detail(format!("asked {} to give up term {}", plain(&asked.node), asked.term));
    let patience = &arguments.patience;
    let ending = steer::until_over(&cluster, lease, &leader, patience).await?;
    let took = clock::now().since(since);
    if session.json {
        let (next, end) = match &ending {
            Ending::Led(next, end) => (Some(next), end),
            Ending::Free(end) => (None, end),
        };
        session.print_json(&json!({
            "lease": lease,
            "from": asked.node,
            "term": asked.term,
            "ended": end.as_str(),
            "leader": next,
            "took_ms": json::millis(took),
        }));
        return Ok(());
    }
    let (from, term, took) = (plain(&asked.node), asked.term, span::text(took));
    let (Ending::Led(_, end) | Ending::Free(end)) = &ending;
    let said = end.sentence(&from, &plain(lease), term);
    match ending {
        Ending::Led(next, _) if next.member == leader.member => {
            say!("{said}, and leads again in term {}: nobody else wanted it", next.term)
        }
        Ending::Led(next, _) => say!(
            "{said}; {GOOD}{} leads{GOOD:#} in term {}, after {took}",
            plain(&next.node),
            next.term
        ),
        Ending::Free(_) => say!("{said}; nobody has taken it yet"),
    };
    Ok(())
}
