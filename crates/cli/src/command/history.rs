//! `incumbent history [NAME]`: who led when, and why it changed.

use std::time::Duration;

use clap::Args;
use incumbent::{Change, ChangeKind, LeaseState};
use serde_json::json;

use crate::exit::{Failure, Outcome};
use crate::json;
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::style::{DIM, GOOD, HEAD, ODD};
use crate::table::{Cell, Table};
use crate::when;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Each lease remembers its last 16 changes of hands. Times are those of the nodes' own clocks.

Examples:
  incumbent history
  incumbent history scheduler
  incumbent history scheduler --json | jq '.leases[].changes[]'";

/// Which lease.
#[derive(Args, Debug)]
pub(crate) struct HistoryArguments {
    /// The lease; all of them if none is named
    #[arg(value_name = "NAME")]
    lease: Option<String>,
}

/// Prints the changes of hands.
pub(crate) async fn run(session: &Session, arguments: &HistoryArguments) -> Outcome {
    let cluster = session.place.cluster().await?;
    let leases = match &arguments.lease {
        Some(lease) => vec![cluster.lease(lease).await?],
        None => cluster.leases().await?,
    };
    if let (Some(lease), [state]) = (&arguments.lease, leases.as_slice())
        && state.term == 0
    {
        let name = cluster.name();
        return Err(Failure::wrong(format!(
            "nobody ever led {lease:?} in the cluster {name:?}: `incumbent status` shows its leases"
        )));
    }
    if session.json {
        session.print_json(&json!({
            "cluster": session.place.cluster,
            "leases": leases.iter().map(json::lease).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    if leases.is_empty() {
        say!("Nobody ever led anything in the cluster {}.", plain(cluster.name()));
    }
    for (number, state) in leases.iter().enumerate() {
        if number > 0 {
            say!("");
        }
        print(state);
    }
    Ok(())
}

fn print(state: &LeaseState) {
    say!("{HEAD}{}{HEAD:#} {DIM}term {}{DIM:#}", plain(&state.lease), state.term);
    let mut table = Table::new(["WHEN", "TERM", "NODE", "WHAT", "LED FOR"]);
    for (number, change) in state.changes.iter().enumerate() {
        let earlier = state.changes.get(..number).unwrap_or_default();
        let later = state.changes.get(number + 1..).unwrap_or_default();
        table.row([
            when::date(change.at_ms).into(),
            change.term.to_string().into(),
            (&change.node).into(),
            what(change, earlier),
            led_for(state, change, later).into(),
        ]);
    }
    table.print();
}

fn what(change: &Change, earlier: &[Change]) -> Cell {
    let taken = |change: &&Change| change.kind != ChangeKind::Freed;
    let before = earlier.iter().rev().find(taken).map_or("the holder", |change| &change.node);
    match change.kind {
        ChangeKind::Taken => Cell::styled("took it: it was free", GOOD),
        ChangeKind::Inherited => Cell::styled(format!("took it: {before} had left"), GOOD),
        ChangeKind::Expired => Cell::styled(format!("took it: {before} had expired"), ODD),
        ChangeKind::Evicted => Cell::styled(format!("took it: {before} was evicted"), ODD),
        ChangeKind::Freed => Cell::styled("freed it", DIM),
    }
}

/// From a take to the next change, by clocks that may differ.
fn led_for(state: &LeaseState, change: &Change, later: &[Change]) -> String {
    match (change.kind, later.first()) {
        (ChangeKind::Freed, _) => String::new(),
        (_, Some(next)) => {
            span::text(Duration::from_millis(next.at_ms.saturating_sub(change.at_ms)))
        }
        (_, None) if state.leader.is_some() => {
            format!("{} so far", when::passed(change.at_ms))
        }
        (_, None) => "-".to_owned(),
    }
}
