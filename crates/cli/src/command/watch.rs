//! `incumbent watch`: the stream of changes.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use incumbent::clock;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::status::{self, Snapshot};
use crate::change::{Item, changes};
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt;
use crate::json;
use crate::out::{self, plain, say};
use crate::session::Session;
use crate::standing;
use crate::style::DIM;
use crate::unread;
use crate::when;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Prints the current state first, then each change as it happens, until Ctrl-C. With --json one object
a
line: first {\"type\": \"state\", …} as `status --json` has it, then {\"type\": \"lease\", …} and
{\"type\": \"member\", …}, {\"type\": \"move\", …} where a duty is to run elsewhere, and
{\"type\": \"unreadable\", …} where a record can't be read any more.

Examples:
  incumbent watch
  incumbent watch scheduler
  incumbent watch --json | jq -c 'select(.type == \"lease\")'";

/// No longer than this between two looks, whatever became of the store's hints.
const LONGEST: Duration = Duration::from_secs(1);

/// What to watch.
#[derive(Args, Debug)]
pub(crate) struct WatchArguments {
    /// The lease; all of them and the members if none is named
    #[arg(value_name = "NAME")]
    lease: Option<String>,
}

/// Follows the cluster until it is interrupted, or nobody reads any more.
pub(crate) async fn run(session: &Session, arguments: &WatchArguments) -> Outcome {
    tokio::select! {
        watched = follow(session, arguments.lease.as_deref()) => watched,
        _ = interrupt::received() => Err(Failure::new(Code::Interrupted, "")),
    }
}

async fn follow(session: &Session, lease: Option<&str>) -> Outcome {
    let cluster = session.place.cluster().await?;
    if let Some(lease) = lease {
        // Says what is wrong with a name before anything is watched.
        cluster.lease(lease).await?;
    }
    let store = session.place.open_to_look().await?;
    let hints = Arc::new(Notify::new());
    let wake = Arc::clone(&hints);
    // Subscribed before the first look, so that nothing falls in between.
    let _guard = store.hints(cluster.name(), Arc::new(move || wake.notify_one()));
    let mut known = look(&cluster, lease).await?;
    if !begin(session, &known) {
        return Ok(());
    }
    if lease.is_none() && known.is_empty() {
        session.remark(status::empty(&session.place));
    }
    unread::remark(session, &known.unreadable);
    let mut failing = false;
    loop {
        tokio::select! {
            () = hints.notified() => {}
            () = tokio::time::sleep(LONGEST) => {}
        }
        if !out::is_read() {
            return Ok(());
        }
        match look(&cluster, lease).await {
            Ok(now) => {
                failing = false;
                for item in changes(&known, &now, clock::wall_ms()) {
                    if !tell(session, &item) {
                        return Ok(());
                    }
                }
                known = now;
            }
            // Said once, and then tried for as long as it takes.
            Err(failure) if !failing => {
                failing = true;
                session.remark(format!("{}; trying again", failure.message));
            }
            Err(_) => {}
        }
    }
}

async fn look(cluster: &incumbent::Cluster, lease: Option<&str>) -> Outcome<Snapshot> {
    match lease {
        None => {
            let mut snapshot = Snapshot::read(cluster).await?;
            // One that has no name yet has only just joined: it is told of when it has.
            snapshot.members.retain(|member| !member.node.is_empty());
            Ok(snapshot)
        }
        Some(lease) => {
            let leases = vec![cluster.lease(lease).await?];
            Ok(Snapshot { leases, ..Snapshot::default() })
        }
    }
}

/// Tells how things stand; says whether anybody may still be reading.
fn begin(session: &Session, known: &Snapshot) -> bool {
    if session.json {
        let mut state = known.json(&session.place);
        if let Some(fields) = state.as_object_mut() {
            fields.insert("type".to_owned(), Value::from("state"));
        }
        return say!("{state}");
    }
    if session.quiet {
        return true;
    }
    let alive: Vec<String> =
        known.members.iter().filter(|it| it.is_alive()).map(|it| plain(&it.node)).collect();
    if !alive.is_empty() {
        say!("{DIM}members: {}{DIM:#}", alive.join(", "));
    }
    let mut reads = true;
    for state in &known.leases {
        let lease = plain(&state.lease);
        let who = plain(&standing::leader(state).0);
        reads = say!("{DIM}{lease}: {who} (term {}){DIM:#}", state.term);
    }
    reads
}

fn tell(session: &Session, item: &Item) -> bool {
    if session.json {
        return say!("{}", item_json(item));
    }
    let (at, style, said) = (when::date(item.at_ms()), item.tone().style(), item.sentence());
    let detail = item.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
    say!("{DIM}{at}{DIM:#}  {style}{said}{style:#}{DIM}{detail}{DIM:#}")
}

fn item_json(item: &Item) -> Value {
    match item {
        Item::Member(member, change, at_ms) => json!({
            "type": "member",
            "change": change,
            "at_ms": at_ms,
            "member": member,
        }),
        Item::Lease(state, change) => json!({
            "type": "lease",
            "change": change.kind.as_str(),
            "at_ms": change.at_ms,
            "lease": state.lease,
            "term": change.term,
            "node": change.node,
            "leader": state.leader.as_ref(),
        }),
        Item::Move(moved) => {
            let mut value = json::moved(moved);
            if let Some(fields) = value.as_object_mut() {
                fields.insert("type".to_owned(), Value::from("move"));
            }
            value
        }
        Item::Unreadable(it, at_ms) => json!({
            "type": "unreadable",
            "key": it.key,
            "reason": it.reason,
            "at_ms": at_ms,
        }),
    }
}
