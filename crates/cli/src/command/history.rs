//! `incumbent history [NAME]`: who led when and why it changed, and where duties moved.

use std::time::Duration;

use clap::Args;
use incumbent::{Change, ChangeKind, Cluster, LeaseState, Moved};
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
Each lease remembers its last 16 changes of hands, and the cluster some hundred moves of duties.
Times are those of the nodes' own clocks.

Examples:
  incumbent history
  incumbent history scheduler
  incumbent history --duty projection/orders
  incumbent history --duty projection
  incumbent history scheduler --json | jq '.leases[].changes[]'";

/// Which lease or duty.
#[derive(Args, Debug)]
pub(crate) struct HistoryArguments {
    /// Only this lease
    #[arg(value_name = "NAME", conflicts_with = "duty")]
    lease: Option<String>,
    /// Only moves of this duty, as family/name, or of all duties of a family
    #[arg(long, value_name = "DUTY")]
    duty: Option<String>,
}

/// Prints the changes of hands, and the moves of duties.
pub(crate) async fn run(session: &Session, arguments: &HistoryArguments) -> Outcome {
    let cluster = session.place.cluster().await?;
    let (leases, moves) = match (&arguments.lease, &arguments.duty) {
        (Some(lease), _) => (vec![led(&cluster, lease).await?], Vec::new()),
        (None, Some(duty)) => (Vec::new(), moved(&cluster, duty).await?),
        (None, None) => (cluster.leases().await?, cluster.moves().await?),
    };
    if session.json {
        session.print_json(&json!({
            "cluster": session.place.cluster,
            "leases": leases.iter().map(json::lease).collect::<Vec<_>>(),
            "moves": moves.iter().map(json::moved).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    match &arguments.duty {
        Some(duty) if moves.is_empty() => say!("No move of {} is remembered.", plain(duty)),
        None if leases.is_empty() => {
            say!("Nobody ever led anything in the cluster {}.", plain(cluster.name()))
        }
        Some(_) | None => true,
    };
    for (number, state) in leases.iter().enumerate() {
        if number > 0 {
            say!("");
        }
        print(state);
    }
    if !moves.is_empty() {
        if !leases.is_empty() {
            say!("");
        }
        print_moves(&moves);
    }
    Ok(())
}

/// A lease that was ever led.
async fn led(cluster: &Cluster, lease: &str) -> Outcome<LeaseState> {
    let state = cluster.lease(lease).await?;
    if state.term == 0 {
        let name = cluster.name();
        return Err(Failure::wrong(format!(
            "nobody ever led {lease:?} in the cluster {name:?}: `incumbent status` shows its leases"
        )));
    }
    Ok(state)
}

/// The moves of a duty or a family that anybody knows.
async fn moved(cluster: &Cluster, wanted: &str) -> Outcome<Vec<Moved>> {
    let work = cluster.workload().await?;
    let meant = |id: &incumbent::DutyId| id.as_str() == wanted || id.family() == wanted;
    let moves: Vec<Moved> = work.moves.into_iter().filter(|moved| meant(&moved.duty)).collect();
    if moves.is_empty() && !work.duties.iter().any(|duty| meant(&duty.id)) {
        return Err(Failure::wrong(format!(
            "nobody knows a duty or a family {wanted:?}: `incumbent duties` lists the duties that \
             live nodes know"
        )));
    }
    Ok(moves)
}

fn print_moves(moves: &[Moved]) {
    say!("{HEAD}duties{HEAD:#} {DIM}the last moves{DIM:#}");
    let mut table = Table::new(["WHEN (UTC)", "DUTY", "FROM", "TO", "WHY"]);
    for moved in moves {
        table.row([
            when::short(moved.at_ms).into(),
            moved.duty.as_str().into(),
            moved.from.as_deref().unwrap_or("-").into(),
            match &moved.to {
                Some(to) => Cell::styled(to, GOOD),
                None => Cell::styled("nowhere", ODD),
            },
            (&moved.why).into(),
        ]);
    }
    table.print();
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
