//! `incumbent intents`: what operators have asked for, and taking it back.

use clap::Args;
use incumbent::{Ask, Cluster, Intent, IntentState};
use serde_json::{Value, json};

use crate::exit::{Failure, Outcome};
use crate::out::{plain, say};
use crate::session::Session;
use crate::style::DIM;
use crate::table::{Cell, Table};
use crate::tone::Tone;
use crate::when;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
A request in force stays so until it is withdrawn: by its opposite (`uncordon`, `thaw`, …), or here.
A pending request is carried out once, by the node that it is meant for. A request that is done
stays listed for a minute or two.

Examples:
  incumbent intents
  incumbent intents --withdraw 3f9a12c4
  incumbent intents --json | jq '.intents[] | select(.kind == \"freeze\")'";

/// So much of an id is enough, if no other begins with it.
const SHORTEST: usize = 4;

/// Which to take back.
#[derive(Args, Debug)]
pub(crate) struct IntentsArguments {
    /// Withdraw this one: its id, or the beginning of it; can be repeated
    #[arg(long, value_name = "ID")]
    withdraw: Vec<String>,
}

/// Lists them, or takes some back.
pub(crate) async fn run(session: &Session, arguments: &IntentsArguments) -> Outcome {
    let cluster = if arguments.withdraw.is_empty() {
        session.place.cluster().await?
    } else {
        session.place.cluster_to_change().await?
    };
    let intents = cluster.all_intents().await?;
    if !arguments.withdraw.is_empty() {
        return withdraw(session, &cluster, &intents, &arguments.withdraw).await;
    }
    if session.json {
        let intents: Vec<Value> = intents.iter().map(as_json).collect();
        session.print_json(&json!({ "cluster": session.place.cluster, "intents": intents }));
    } else if intents.is_empty() {
        say!("Nobody has asked for anything in the cluster {}.", plain(cluster.name()));
    } else {
        print(&intents);
    }
    Ok(())
}

async fn withdraw(
    session: &Session,
    cluster: &Cluster,
    intents: &[Intent],
    wanted: &[String],
) -> Outcome {
    // All are looked for before any is taken back.
    let meant: Vec<&Intent> = wanted.iter().map(|id| find(intents, id)).collect::<Outcome<_>>()?;
    let mut withdrawn = Vec::new();
    for intent in meant {
        let done = cluster.withdraw(&intent.id).await?;
        if !session.json {
            let (what, state) = (plain(&sentence(&intent.ask)), state(intent).0);
            let id = short(intent);
            match done {
                true => say!("{id} is withdrawn: {what}"),
                false => say!("{id} is {state} already, and stays so: {what}"),
            };
        }
        withdrawn.push(json!({ "id": intent.id, "withdrawn": done }));
    }
    if session.json {
        session.print_json(&json!({ "cluster": cluster.name(), "intents": withdrawn }));
    }
    Ok(())
}

fn find<'a>(intents: &'a [Intent], id: &str) -> Outcome<&'a Intent> {
    if let Some(exact) = intents.iter().find(|intent| intent.id == id) {
        return Ok(exact);
    }
    let long = id.len() >= SHORTEST;
    let found: Vec<&Intent> =
        intents.iter().filter(|intent| long && intent.id.starts_with(id)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::wrong(format!(
            "nothing with the id {id:?} was asked for: `incumbent intents` lists the ids, of which \
             the first {SHORTEST} characters or more are needed"
        ))),
        several => {
            Err(Failure::usage(format!("{} ids begin with {id:?}: give more of it", several.len())))
        }
    }
}

/// Prints intents as a table.
pub(crate) fn print(intents: &[Intent]) {
    let mut table = Table::new(["ID", "ASKED FOR", "STATE", "WHEN", "BY"]);
    for intent in intents {
        let (word, tone) = state(intent);
        let style = if tone == Tone::Faint { DIM } else { crate::style::PLAIN };
        let cell = |text: &str| Cell::styled(text, style);
        table.row([
            cell(short(intent)),
            cell(&sentence(&intent.ask)),
            Cell::toned((word, tone)),
            cell(&when::ago(intent.at_ms)),
            cell(if intent.by.is_empty() { "-" } else { &intent.by }),
        ]);
    }
    table.print();
}

/// An intent as JSON.
pub(crate) fn as_json(intent: &Intent) -> Value {
    let Subject { kind, duty, node, family, version, lease, term } = subject(&intent.ask);
    json!({
        "id": intent.id,
        "kind": kind,
        "what": sentence(&intent.ask),
        "state": state(intent).0,
        "duty": duty,
        "node": node,
        "family": family,
        "version": version,
        "lease": lease,
        "term": term,
        "by": intent.by,
        "at_ms": intent.at_ms,
    })
}

fn short(intent: &Intent) -> &str {
    intent.id.get(..8).unwrap_or(&intent.id)
}

fn state(intent: &Intent) -> (&'static str, Tone) {
    match (intent.state, &intent.ask) {
        (IntentState::Done, _) => ("done", Tone::Faint),
        (IntentState::Obsolete, _) => ("obsolete", Tone::Faint),
        (
            IntentState::Open,
            Ask::Resign { .. } | Ask::Move { .. } | Ask::Promote { .. } | Ask::Abort { .. },
        ) => ("pending", Tone::Work),
        (
            IntentState::Open,
            Ask::Pin { .. }
            | Ask::Pause { .. }
            | Ask::Cordon { .. }
            | Ask::Drain { .. }
            | Ask::Freeze
            | Ask::Hold { .. }
            | Ask::Canary { .. },
        ) => ("in force", Tone::Odd),
    }
}

/// What is asked, in words.
pub(crate) fn sentence(ask: &Ask) -> String {
    match ask {
        Ask::Resign { lease, term, successor: None } => format!("resign {lease} (term {term})"),
        Ask::Resign { lease, term, successor: Some(to) } => {
            let to = to.as_str().get(..8).unwrap_or(to.as_str());
            format!("transfer {lease} (term {term}) to member {to}")
        }
        Ask::Pin { duty, node, required: false } => format!("pin {duty} to {node}"),
        Ask::Pin { duty, node, required: true } => format!("pin {duty} to {node} or nowhere"),
        Ask::Pause { duty } => format!("pause {duty}"),
        Ask::Move { duty, node } => format!("move {duty} to {node}"),
        Ask::Cordon { node } => format!("cordon {node}"),
        Ask::Drain { node } => format!("drain {node}"),
        Ask::Freeze => "freeze: nothing moves just to balance the load".to_owned(),
        Ask::Hold { family } => format!("hold the rollout of {family}"),
        Ask::Canary { family, canary } => {
            let amount = match (canary.duties, canary.percent) {
                (duties, 0) => format!("{duties} duties"),
                (0, percent) => format!("{percent}%"),
                (duties, percent) => format!("{duties} duties or {percent}%"),
            };
            format!("try new versions of {family} on {amount} first")
        }
        Ask::Promote { family, version } => format!("promote {family} to {version}"),
        Ask::Abort { family, version } => format!("abort version {version} of {family}"),
    }
}

#[derive(Default)]
struct Subject<'a> {
    kind: &'static str,
    duty: Option<&'a str>,
    node: Option<&'a str>,
    family: Option<&'a str>,
    version: Option<&'a str>,
    lease: Option<&'a str>,
    term: Option<u64>,
}

/// What it is about.
fn subject(ask: &Ask) -> Subject<'_> {
    let none = Subject::default();
    match ask {
        Ask::Resign { lease, term, successor } => {
            let kind = if successor.is_some() { "transfer" } else { "resign" };
            Subject { kind, lease: Some(lease), term: Some(*term), ..none }
        }
        Ask::Pin { duty, node, .. } => {
            Subject { kind: "pin", duty: Some(duty), node: Some(node), ..none }
        }
        Ask::Pause { duty } => Subject { kind: "pause", duty: Some(duty), ..none },
        Ask::Move { duty, node } => {
            Subject { kind: "move", duty: Some(duty), node: Some(node), ..none }
        }
        Ask::Cordon { node } => Subject { kind: "cordon", node: Some(node), ..none },
        Ask::Drain { node } => Subject { kind: "drain", node: Some(node), ..none },
        Ask::Freeze => Subject { kind: "freeze", ..none },
        Ask::Hold { family } => Subject { kind: "hold", family: Some(family), ..none },
        Ask::Canary { family, .. } => Subject { kind: "canary", family: Some(family), ..none },
        Ask::Promote { family, version } => {
            Subject { kind: "promote", family: Some(family), version: Some(version), ..none }
        }
        Ask::Abort { family, version } => {
            Subject { kind: "abort", family: Some(family), version: Some(version), ..none }
        }
    }
}
