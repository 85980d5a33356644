//! `incumbent duties`, `explain` and `plan`: where work runs, why, and what would move.

use clap::Args;
use incumbent::{DutyCondition, DutyStanding, Workload};
use serde_json::{Value, json};

use super::intents;
use crate::exit::{Code, Failure, Outcome};
use crate::out::{plain, say};
use crate::session::Session;
use crate::standing;
use crate::style::{BAD, HEAD};
use crate::table::{Cell, Table};
use crate::unread;

/// What `duties --help` shows below.
pub(crate) const DUTIES_EXAMPLES: &str = "\
Examples:
  incumbent duties
  incumbent duties --not-active
  incumbent duties --json | jq '.duties[] | select(.state != \"active\")'";

/// What `explain --help` shows below.
pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  incumbent explain projection/orders";

/// What `plan --help` shows below.
pub(crate) const PLAN_EXAMPLES: &str = "\
Nothing is changed: the leader plans by itself, and limits how much moves at a time. If the leader
uses a placement strategy of its own, the answer says so: what that would do can't be known here.

Examples:
  incumbent plan --dry-run
  incumbent plan --json | jq .moves";

/// Which duties.
#[derive(Args, Debug)]
pub(crate) struct DutiesArguments {
    /// Only those that don't run
    #[arg(long)]
    not_active: bool,
}

/// Which duty.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The duty, as family/name
    #[arg(value_name = "DUTY", value_parser = named)]
    duty: String,
}

/// There is nothing to choose.
#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    /// Change nothing; this is always the case
    #[arg(long)]
    dry_run: bool,
}

/// Reads the name of a duty.
pub(crate) fn named(text: &str) -> Result<String, String> {
    let advice = "a duty is named family/name, such as projection/orders; `incumbent duties` lists \
                  them";
    match text.split_once('/') {
        Some((family, name)) if !family.is_empty() && !name.is_empty() => Ok(text.to_owned()),
        _ => Err(advice.to_owned()),
    }
}

/// Prints all duties.
pub(crate) async fn run(session: &Session, arguments: &DutiesArguments) -> Outcome {
    let cluster = session.place.cluster().await?;
    let Workload { mut duties, intents, unreadable, .. } = cluster.workload().await?;
    let all = duties.len();
    if arguments.not_active {
        duties.retain(|duty| duty.condition != DutyCondition::Active);
    }
    if session.json {
        session.print_json(&json!({
            "cluster": session.place.cluster,
            "duties": duties,
            "intents": intents.iter().map(intents::as_json).collect::<Vec<_>>(),
            "unreadable": &unreadable,
        }));
        return Ok(());
    }
    let name = plain(&session.place.cluster);
    if all == 0 {
        say!("The cluster {name} has no duties: no node that is alive serves any.");
    } else if duties.is_empty() {
        say!("All {all} duties of the cluster {name} are active.");
    } else {
        print(&duties);
    }
    if !intents.is_empty() {
        say!("");
        intents::print(&intents);
    }
    unread::print(&unreadable);
    Ok(())
}

/// Prints duties as a table, with versions and weights where there are any.
pub(crate) fn print(duties: &[DutyStanding]) {
    let heads = ["DUTY", "STATE", "NODE", "TERM", "VERSION", "WEIGHT", "WHERE", "NOTE"];
    let mut table = Table::new(heads);
    table.hide_if("VERSION", duties.iter().all(|duty| duty.version.is_none()));
    table.hide_if("WEIGHT", duties.iter().all(|duty| duty.weight == 1));
    table.hide_if("WHERE", duties.iter().all(|duty| duty.address.is_none()));
    for duty in duties {
        let (note, tone) = standing::duty(duty);
        table.row([
            duty.id.as_str().into(),
            Cell::toned((duty.condition.as_str(), tone)),
            duty.node.as_deref().unwrap_or("-").into(),
            duty.term.to_string().into(),
            duty.version.as_deref().unwrap_or("-").into(),
            duty.weight.to_string().into(),
            duty.address.as_deref().unwrap_or("-").into(),
            note.into(),
        ]);
    }
    table.hide_if("NOTE", duties.iter().all(|duty| standing::duty(duty).0.is_empty()));
    table.print();
}

/// Says why a duty runs where it does.
pub(crate) async fn explain(session: &Session, arguments: &ExplainArguments) -> Outcome {
    let cluster = session.place.cluster().await?;
    let Some(explanation) = cluster.explain(&arguments.duty).await? else {
        let said = format!(
            "nobody knows the duty {:?}: `incumbent duties` lists those that live nodes know",
            arguments.duty
        );
        return Err(Failure::new(Code::Wrong, said));
    };
    if session.json {
        let mut value = json!(explanation.duty);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("explanation".to_owned(), json!(explanation.lines));
        }
        session.print_json(&value);
        return Ok(());
    }
    let duty = &explanation.duty;
    let on = duty.node.as_ref().map(|node| format!(" on {}", plain(node))).unwrap_or_default();
    say!("{HEAD}{}{HEAD:#}: {}{on}", plain(duty.id.as_str()), duty.condition.as_str());
    for line in &explanation.lines {
        say!("  {}", plain(line));
    }
    Ok(())
}

/// Says what would move.
pub(crate) async fn plan(session: &Session, _: &PlanArguments) -> Outcome {
    let cluster = session.place.cluster().await?;
    let preview = cluster.plan().await?;
    if session.json {
        let moves: Vec<Value> = preview
            .moves
            .iter()
            .map(|step| {
                json!({
                    "duty": step.duty.as_str(),
                    "from": step.from,
                    "to": step.to,
                    "why": step.why,
                })
            })
            .collect();
        let unplaced: Vec<Value> = preview
            .unplaced
            .iter()
            .map(|(duty, reason)| json!({ "duty": duty.as_str(), "reason": reason }))
            .collect();
        session.print_json(&json!({
            "moves": moves,
            "unplaced": unplaced,
            "unknown": preview.unknown,
        }));
        return Ok(());
    }
    if preview.moves.is_empty() {
        say!("Nothing would move.");
    } else {
        let mut table = Table::new(["DUTY", "FROM", "TO", "WHY"]);
        for step in &preview.moves {
            table.row([
                step.duty.as_str().into(),
                step.from.as_deref().unwrap_or("-").into(),
                step.to.as_deref().unwrap_or("-").into(),
                step.why.as_str().into(),
            ]);
        }
        table.print();
    }
    for (duty, reason) in &preview.unplaced {
        say!("{BAD}{}{BAD:#} runs nowhere: {}", plain(duty.as_str()), plain(reason));
    }
    if let Some(unknown) = &preview.unknown {
        say!("But {}.", plain(unknown));
    }
    Ok(())
}
