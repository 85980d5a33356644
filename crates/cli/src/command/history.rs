//! `incumbent history [NAME]`: who led when and why it changed, and where duties moved.

use std::time::Duration;

use clap::Args;
use incumbent::{Change, ChangeKind, Cluster, DutyStanding, LeaseState, MemberState, Moved, clock};
use serde_json::json;

use super::status::Snapshot;
use crate::exit::{Failure, Outcome};
use crate::json;
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::style::{BAD, DIM, GOOD, HEAD, ODD};
use crate::table::{Cell, Table};
use crate::unread;
use crate::when;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Each lease remembers its last 16 changes of hands, and the cluster some hundred moves of duties.
Times are those of the nodes' own clocks. The end of a term is recorded only if its lease was freed.
A term that expired lasted at most until the next began.

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
    let (leases, moves, unreadable) = match (&arguments.lease, &arguments.duty) {
        (Some(lease), _) => (vec![led(&cluster, lease).await?], Vec::new(), Vec::new()),
        (None, Some(duty)) => {
            let work = cluster.workload().await?;
            (Vec::new(), moved(work.moves, &work.duties, duty)?, work.unreadable)
        }
        (None, None) => {
            let Snapshot { leases, work, unreadable, .. } = Snapshot::read(&cluster).await?;
            (leases, work.moves, unreadable)
        }
    };
    if session.json {
        session.print_json(&json!({
            "cluster": session.place.cluster,
            "leases": leases,
            "moves": moves.iter().map(json::moved).collect::<Vec<_>>(),
            "unreadable": &unreadable,
        }));
        return Ok(());
    }
    match &arguments.duty {
        Some(duty) if moves.is_empty() => say!("No move of {} is remembered.", plain(duty)),
        None if leases.is_empty() => {
            say!("Nobody has ever led anything in the cluster {}.", plain(cluster.name()))
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
    unread::print(&unreadable);
    Ok(())
}

/// A lease that was ever led.
async fn led(cluster: &Cluster, lease: &str) -> Outcome<LeaseState> {
    let state = cluster.lease(lease).await?;
    if state.term == 0 {
        let name = cluster.name();
        return Err(Failure::wrong(format!(
            "nobody has ever led {lease:?} in the cluster {name:?}: `incumbent status` shows its leases"
        )));
    }
    Ok(state)
}

/// The moves of a duty or a family that anybody knows.
fn moved(moves: Vec<Moved>, duties: &[DutyStanding], wanted: &str) -> Outcome<Vec<Moved>> {
    let meant = |id: &incumbent::DutyId| id.as_str() == wanted || id.family() == wanted;
    let moves: Vec<Moved> = moves.into_iter().filter(|moved| meant(&moved.duty)).collect();
    if moves.is_empty() && !duties.iter().any(|duty| meant(&duty.id)) {
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
    if let Some(unreadable) = &state.unreadable {
        let (lease, said) = (plain(&state.lease), plain(&unreadable.to_string()));
        say!("{HEAD}{lease}{HEAD:#} {BAD}who leads isn't known{BAD:#}: {said}");
        if state.changes.is_empty() {
            return;
        }
    } else {
        say!("{HEAD}{}{HEAD:#} {DIM}term {}{DIM:#}", plain(&state.lease), state.term);
    }
    let mut table = Table::new(["WHEN", "TERM", "NODE", "WHAT", "LED FOR"]);
    for (number, change) in state.changes.iter().enumerate() {
        let earlier = state.changes.get(..number).unwrap_or_default();
        let later = state.changes.get(number + 1..).unwrap_or_default();
        table.row([
            when::date(change.at_ms).into(),
            change.term.to_string().into(),
            (&change.node).into(),
            what(change, earlier),
            led_for(state, change, later, clock::wall_ms()).into(),
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

/// How long a term lasted, by clocks that may differ. Only one that was freed has an end that is
/// written down; of any other it is known by when somebody else led, or that nobody does.
fn led_for(state: &LeaseState, change: &Change, later: &[Change], now_ms: u64) -> String {
    let lasted =
        |until_ms: u64| span::text(Duration::from_millis(until_ms.saturating_sub(change.at_ms)));
    match (change.kind, later.first(), &state.leader) {
        (ChangeKind::Freed, ..) => String::new(),
        (_, Some(next), _) if next.kind == ChangeKind::Freed => lasted(next.at_ms),
        (_, Some(next), _) => format!("at most {}", lasted(next.at_ms)),
        (_, None, _) if state.unreadable.is_some() => "-".to_owned(),
        (_, None, Some(leader)) => {
            let silent =
                leader.age.filter(|age| leader.state != MemberState::Alive || *age > leader.ttl);
            match silent {
                None => format!("{} so far", lasted(now_ms)),
                // It trusted for a ttl after it was last heard of, or evicted, and no longer.
                Some(age) => {
                    let over = json::millis(age.saturating_sub(leader.ttl));
                    format!("at most {}", lasted(now_ms.saturating_sub(over)))
                }
            }
        }
        (_, None, None) => format!("at most {}", lasted(now_ms)),
    }
}

#[cfg(test)]
mod tests {
    use incumbent::Leader;

    use super::*;

    fn change(term: u64, kind: ChangeKind, at_ms: u64) -> Change {
        Change { term, kind, node: "a".to_owned(), at_ms }
    }

    fn told(changes: Vec<Change>, leader: Option<Leader>, now_ms: u64) -> Vec<String> {
        let lease = "scheduler".to_owned();
        let state = LeaseState { lease, term: 2, leader, changes, unreadable: None };
        let row = |(number, change): (usize, &Change)| {
            led_for(&state, change, &state.changes[number + 1..], now_ms)
        };
        state.changes.iter().enumerate().map(row).collect()
    }

    fn leader(state: MemberState, age_ms: u64) -> Leader {
        Leader {
            node: "a".to_owned(),
            member: incumbent::MemberId::new("m"),
            address: None,
            term: 2,
            payload: None,
            since_ms: None,
            state,
            age: Some(Duration::from_millis(age_ms)),
            ttl: Duration::from_secs(15),
        }
    }

    #[test]
    fn o34_time_without_a_leader_is_not_told_as_time_led() {
        use ChangeKind::{Expired, Freed, Inherited, Taken};
        let day = 86_400_000;
        let freed = vec![change(1, Taken, 0), change(1, Freed, 60_000), change(2, Taken, day)];
        let alive = Some(leader(MemberState::Alive, 1000));
        assert_eq!(told(freed, alive.clone(), day + 30_000), ["60 s", "", "30 s so far"]);
        // Nobody knows how long before the next took it the last had ended.
        for kind in [Expired, Inherited, ChangeKind::Evicted] {
            let ended = vec![change(1, Taken, 0), change(2, kind, 3 * day)];
            assert_eq!(told(ended, alive.clone(), 3 * day)[0], "at most 3 d", "{kind:?}");
        }
        let taken = vec![change(2, Taken, 0)];
        assert_eq!(told(taken.clone(), None, 60_000), ["at most 60 s"]);
        // Silent for a day, after it had led for a minute.
        for state in [MemberState::Alive, MemberState::Evicted] {
            let silent = Some(leader(state, day));
            assert_eq!(told(taken.clone(), silent, day + 60_000), ["at most 75 s"]);
        }
    }
}
