//! `incumbent transfer NAME --to NODE`: asks the leader to give a lease to another.

use std::time::Duration;

use clap::Args;
use incumbent::{Leader, clock};
use serde_json::{Value, json};

use crate::exit::{Failure, Outcome};
use crate::json;
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::steer::{self, End, Ending, Patience};
use crate::style::GOOD;
use crate::whom;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
The leader ends its work in order and frees the lease; the others hold back for the named node, but
not for long. Exits with 1 if somebody else got it.

Examples:
  incumbent transfer scheduler --to billing-2
  incumbent transfer scheduler --to 3f9a12c4     # a member, by its id";

/// Which lease, and to whom.
#[derive(Args, Debug)]
pub(crate) struct TransferArguments {
    /// The lease
    #[arg(value_name = "NAME")]
    lease: String,
    /// The node's name, or the member's id or its beginning
    #[arg(long, value_name = "NODE")]
    to: String,
    #[command(flatten)]
    patience: Patience,
}

/// Asks, waits, and says what happened.
pub(crate) async fn run(session: &Session, arguments: &TransferArguments) -> Outcome {
    let lease = &arguments.lease;
    let cluster = session.place.cluster_to_change().await?;
    let Some(leader) = cluster.leader(lease).await? else {
        return Err(Failure::wrong(format!(
            "nobody leads {lease:?}: there is nothing to transfer. `incumbent status` lists the leases"
        )));
    };
    let heir = whom::find(&cluster, &arguments.to).await?;
    let (from, to) = (plain(&leader.node), plain(&heir.node));
    if heir.id == leader.member {
        if session.json {
            session.print_json(&answer(lease, &leader, None, &leader, Duration::ZERO));
        } else {
            say!("{to} leads {lease} already, in term {}", leader.term);
        }
        return Ok(());
    }
    steer::warn_if_overdue(session, &leader);
    let since = clock::now();
    let asked = cluster.request_transfer(lease, heir.id.as_str()).await?.leader;
    let term = asked.map_or(leader.term, |asked| asked.term);
    session.detail(format!("asked {from} to give term {term} to {to}"));
    let patience = &arguments.patience;
    let ending = steer::until_over(&cluster, lease, &leader, patience).await?;
    let took = clock::now().since(since);
    let (next, end) = match ending {
        Ending::Led(next, end) => (next, end),
        Ending::Free(end) => {
            let ended = ended(end, &from, lease, leader.term);
            return Err(Failure::late(format!(
                "{ended}, but neither {to} nor anybody else has taken it: is {to} a candidate?"
            )));
        }
    };
    let ended = ended(end, &from, lease, leader.term);
    if next.member != heir.id {
        return Err(Failure::wrong(format!(
            "{ended}, but {} took it in term {} and not {to}: is {to} a candidate?",
            plain(&next.node),
            next.term
        )));
    }
    if session.json {
        session.print_json(&answer(lease, &leader, Some(end), &next, took));
        return Ok(());
    }
    let (term, took) = (next.term, span::text(took));
    say!("{ended}; {GOOD}{to} leads{GOOD:#} in term {term}, after {took}");
    Ok(())
}

/// Only who gave it up did so for somebody.
fn ended(end: End, from: &str, lease: &str, term: u64) -> String {
    match end {
        End::Freed => format!("{from} gave {lease} up"),
        End::Left | End::Expired | End::Evicted => end.sentence(from, lease, term),
    }
}

fn answer(lease: &str, from: &Leader, end: Option<End>, to: &Leader, took: Duration) -> Value {
    json!({
        "lease": lease,
        "from": from.node,
        "term": from.term,
        "ended": end.map(End::as_str),
        "leader": to,
        "took_ms": json::millis(took),
    })
}
