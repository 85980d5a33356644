//! `incumbent rollout …`: how new versions of families get on, and what operators say about them.

use std::time::Duration;

use clap::{Args, Subcommand};
use incumbent::{Asked, Canary, Cluster, RolloutStanding, RolloutState, VersionStanding};
use serde_json::{Value, json};

use crate::exit::{Code, Failure, Outcome};
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::style::HEAD;
use crate::table::{Cell, Table};
use crate::tone::Tone;
use crate::unknown::{self, Named};

const STATUS_EXAMPLES: &str = "\
Examples:
  incumbent rollout status
  incumbent rollout status projection
  incumbent rollout status --json | jq '.rollouts[] | {family, state, note}'";

const HOLD_EXAMPLES: &str = "\
Duties on a newer version stay there, and no more move to one until `rollout resume`,
`promote` or `abort`. Without a family it holds those that are not settled.

Examples:
  incumbent rollout hold
  incumbent rollout hold projection
  incumbent rollout resume projection";

const PROMOTE_EXAMPLES: &str = "\
All duties of the family move to the newest version, as far as its nodes have room: its trial is over,
and duties that came back from it try it again. It does not apply to later versions.

Examples:
  incumbent rollout promote
  incumbent rollout promote projection";

const ABORT_EXAMPLES: &str = "\
Duties on the newest version go back to nodes of other versions, as far as these have room, and stay
there until `rollout promote` or a newer version.

Examples:
  incumbent rollout abort
  incumbent rollout abort projection";

const CANARY_EXAMPLES: &str = "\
A number of duties, or a share of them, moves to a new version before the rest, and must run well
there for a while. This applies to all later versions, until `--off`; without it, the setting on the
nodes of the newest version applies.

Examples:
  incumbent rollout canary projection 3 --well-for 10m
  incumbent rollout canary projection 10% --well-for 5m
  incumbent rollout canary projection --off";

/// What to do about new versions.
#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Show the versions of families, and which is the newest and why
    #[command(after_help = STATUS_EXAMPLES)]
    Status(FamilyArgument),
    /// Move no more duties to a newer version
    #[command(after_help = HOLD_EXAMPLES)]
    Hold(FamilyArgument),
    /// End a hold
    #[command(after_help = HOLD_EXAMPLES)]
    Resume(FamilyArgument),
    /// Move all duties to the newest version, whatever spoke against it
    #[command(after_help = PROMOTE_EXAMPLES)]
    Promote(FamilyArgument),
    /// Move all duties back from the newest version
    #[command(after_help = ABORT_EXAMPLES)]
    Abort(FamilyArgument),
    /// Set how new versions are tried
    #[command(after_help = CANARY_EXAMPLES)]
    Canary(CanaryArguments),
}

/// Which family.
#[derive(Args, Debug)]
pub(crate) struct FamilyArgument {
    /// The family [default: all whose rollout is not settled]
    family: Option<String>,
}

/// Which family, and how much of it.
#[derive(Args, Debug)]
pub(crate) struct CanaryArguments {
    /// The family
    family: String,
    /// How many duties, or a share of them such as 10%
    #[arg(value_name = "DUTIES", value_parser = amount, required_unless_present = "off")]
    amount: Option<Amount>,
    /// How long they must run well before the rest follow
    #[arg(long, value_name = "SPAN", default_value = "5m", value_parser = span::parse)]
    well_for: Duration,
    /// Take it back
    #[arg(long, conflicts_with = "amount")]
    off: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Duties(u64),
    Percent(u64),
}

/// Reads `3` or `10%`.
fn amount(text: &str) -> Result<Amount, String> {
    let advice = "write a number of duties such as 3, or a share of them from 1% to 100%";
    let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
    match text.strip_suffix('%') {
        Some(share) => number(share).filter(|it| *it <= 100).map(Amount::Percent),
        None => number(text).map(Amount::Duties),
    }
    .ok_or_else(|| advice.to_owned())
}

/// Does it.
pub(crate) async fn run(session: &Session, command: &RolloutCommand) -> Outcome {
    match command {
        RolloutCommand::Status(which) => {
            status(session, &session.place.cluster().await?, which).await
        }
        RolloutCommand::Hold(_)
        | RolloutCommand::Resume(_)
        | RolloutCommand::Promote(_)
        | RolloutCommand::Abort(_)
        | RolloutCommand::Canary(_) => {
            ask(session, &session.place.cluster_to_change().await?, command).await
        }
    }
}

async fn status(session: &Session, cluster: &Cluster, which: &FamilyArgument) -> Outcome {
    let mut rollouts = cluster.rollouts().await?;
    if let Some(family) = &which.family {
        rollouts.retain(|rollout| rollout.family == *family);
        if rollouts.is_empty() {
            return Err(no_versions(family));
        }
    }
    if session.json {
        let rollouts: Vec<Value> = rollouts.iter().map(as_json).collect();
        session.print_json(&json!({ "cluster": session.place.cluster, "rollouts": rollouts }));
        return Ok(());
    }
    if rollouts.is_empty() {
        say!("No family of the cluster {} names a version.", plain(&session.place.cluster));
    }
    rollouts.iter().for_each(print);
    Ok(())
}

fn print(rollout: &RolloutStanding) {
    say!("{HEAD}{}{HEAD:#}: {}", plain(&rollout.family), plain(&rollout.state.to_string()));
    if let Some(newest) = rollout.versions.first().and_then(|newest| newest.version.as_ref()) {
        say!("  the newest version is {}, {}", plain(newest), rollout.basis);
    }
    if let Some(trial) = &rollout.trial {
        let (there, limit, failed) = (trial.there.len(), trial.limit, trial.failed);
        let well_for = span::setting(Duration::from_millis(trial.canary.well_ms));
        say!("  on trial: {there} of at most {limit} run it, {failed} came back; the rest follows");
        say!("  when all have been well for {well_for}, or at `incumbent rollout promote`");
    }
    let mut table = Table::new(["VERSION", "NODES", "DUTIES", "PREPARING", "CAME BACK", "NOTE"]);
    for version in &rollout.versions {
        let back = if version.returned.is_empty() { Tone::Faint } else { Tone::Bad };
        table.row([
            version.version.as_deref().unwrap_or("none").into(),
            version.nodes.join(", ").into(),
            version.duties.to_string().into(),
            version.preparing.len().to_string().into(),
            Cell::toned((version.returned.len().to_string(), back)),
            note(version).into(),
        ]);
    }
    table.print();
}

fn note(version: &VersionStanding) -> String {
    if let Some(why) = &version.aborted {
        return why.clone();
    }
    if let Some((duty, why)) = version.returned.first_key_value() {
        return format!("{}: {why}", duty.name());
    }
    let promoted = if version.promoted { "promoted" } else { "" };
    promoted.to_owned()
}

fn as_json(rollout: &RolloutStanding) -> Value {
    let versions: Vec<Value> = rollout
        .versions
        .iter()
        .map(|it| {
            let name = |(duty, text): (&incumbent::DutyId, &String)| {
                (duty.name().to_owned(), Value::from(text.clone()))
            };
            json!({
                "version": it.version,
                "nodes": it.nodes,
                "duties": it.duties,
                "preparing": Value::Object(it.preparing.iter().map(name).collect()),
                "returned": Value::Object(it.returned.iter().map(name).collect()),
                "aborted": it.aborted,
                "promoted": it.promoted,
            })
        })
        .collect();
    let trial = rollout.trial.as_ref().map(|trial| {
        json!({
            "version": trial.version,
            "limit": trial.limit,
            "there": trial.there.len(),
            "returned": trial.failed,
            "well_ms": trial.canary.well_ms,
        })
    });
    json!({
        "family": rollout.family,
        "state": rollout.state.as_str(),
        "note": rollout.state.to_string(),
        "newest": rollout.versions.first().and_then(|it| it.version.clone()),
        "order": rollout.basis.to_string(),
        "listed": rollout.listed,
        "trial": trial,
        "versions": versions,
    })
}

/// Asks for it, for every family that is meant.
async fn ask(session: &Session, cluster: &Cluster, command: &RolloutCommand) -> Outcome {
    let families = match command {
        RolloutCommand::Canary(canary) => vec![canary.family.clone()],
        RolloutCommand::Status(which)
        | RolloutCommand::Hold(which)
        | RolloutCommand::Resume(which)
        | RolloutCommand::Promote(which)
        | RolloutCommand::Abort(which) => meant(cluster, command, which).await?,
    };
    let mut all = Vec::new();
    for family in families {
        let asked = ask_one(cluster, command, &family).await?;
        if asked.intents.is_empty() && !asked.unknown.is_empty() {
            return Err(no_versions(&family));
        }
        if !asked.unknown.is_empty() {
            let names = [(Named::Family, family.as_str())];
            unknown::warn(session, cluster, &names, &asked.unknown).await?;
        }
        all.push((family, asked));
    }
    if session.json {
        let asked: Vec<Value> = all
            .iter()
            .map(|(family, asked)| {
                json!({
                    "family": family,
                    "done": !asked.intents.is_empty(),
                    "intents": asked.intents,
                    "unknown": asked.unknown,
                })
            })
            .collect();
        session.print_json(&json!({ "asked": asked }));
        return Ok(());
    }
    for (family, asked) in &all {
        say!("{}: {}", plain(family), told(command, asked));
    }
    Ok(())
}

async fn ask_one(
    cluster: &Cluster,
    command: &RolloutCommand,
    family: &str,
) -> Result<Asked, Failure> {
    Ok(match command {
        RolloutCommand::Status(_) => Asked::default(),
        RolloutCommand::Hold(_) => cluster.hold_rollout(family).await?,
        RolloutCommand::Resume(_) => cluster.resume_rollout(family).await?,
        RolloutCommand::Promote(_) => cluster.promote(family).await?,
        RolloutCommand::Abort(_) => cluster.abort_rollout(family).await?,
        RolloutCommand::Canary(canary) => {
            let asked = canary.amount.map(|amount| match amount {
                Amount::Duties(duties) => Canary::duties(duties, canary.well_for),
                Amount::Percent(percent) => Canary::percent(percent, canary.well_for),
            });
            cluster.set_canary(family, asked).await?
        }
    })
}

/// The family that is named, or all whose rollout is under way.
async fn meant(
    cluster: &Cluster,
    command: &RolloutCommand,
    which: &FamilyArgument,
) -> Result<Vec<String>, Failure> {
    if let Some(family) = &which.family {
        return Ok(vec![family.clone()]);
    }
    let several = |it: &RolloutStanding| it.versions.len() > 1;
    // After an abort nothing is under way, and it may still be promoted.
    let meant = |it: &RolloutStanding| {
        let settled = it.state == RolloutState::Settled;
        several(it) && (!settled || matches!(command, RolloutCommand::Abort(_)))
    };
    let rollouts = cluster.rollouts().await?;
    let families: Vec<String> =
        rollouts.into_iter().filter(meant).map(|rollout| rollout.family).collect();
    if families.is_empty() {
        let said = "no family has a rollout under way: name one, or see `incumbent rollout status`";
        return Err(Failure::new(Code::Wrong, said.to_owned()));
    }
    Ok(families)
}

fn told(command: &RolloutCommand, asked: &Asked) -> &'static str {
    if asked.intents.is_empty() {
        return "there was nothing to withdraw";
    }
    match command {
        RolloutCommand::Status(_) => "",
        RolloutCommand::Hold(_) => {
            "no more duties move to a newer version until `incumbent rollout resume`"
        }
        RolloutCommand::Resume(_) => "duties may move to a newer version again",
        RolloutCommand::Promote(_) => "all duties will move to the newest version",
        RolloutCommand::Abort(_) => "all duties will come back from the newest version",
        RolloutCommand::Canary(canary) if canary.off => "new versions are tried as their nodes say",
        RolloutCommand::Canary(_) => {
            "new versions are tried this way until `incumbent rollout canary --off`"
        }
    }
}

fn no_versions(family: &str) -> Failure {
    let said = format!(
        "the family {family:?} names no version at the moment: `incumbent rollout status` shows \
         those that do"
    );
    Failure::new(Code::Wrong, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers_or_shares() {
        assert_eq!(amount("3"), Ok(Amount::Duties(3)));
        assert_eq!(amount("10%"), Ok(Amount::Percent(10)));
        for wrong in ["", "0", "%", "0%", "101%", "ten", "-1", "3 %"] {
            assert!(amount(wrong).is_err(), "{wrong:?}");
        }
    }
}
