//! `incumbent store reset`: removes a cluster.

use std::io::IsTerminal;

use clap::Args;
use incumbent::Cluster;
use serde_json::json;

use crate::exit::{Code, Failure, Outcome};
use crate::out::{self, note, plain, say};
use crate::session::Session;
use crate::style::ODD;
use crate::sweep;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
This removes all records of the cluster, including its leases. Terms start again at 1, so anything
that remembers a higher fence will refuse the new leaders. Stop all nodes first; while some are
alive, --force is
needed.

Examples:
  incumbent --store sqlite:app.db --cluster trial store reset
  incumbent --store sqlite:app.db --cluster trial store reset --yes";

/// How sure one has to be.
#[derive(Args, Debug)]
pub(crate) struct ResetArguments {
    /// Don't ask
    #[arg(long)]
    yes: bool,
    /// Even while nodes are alive; they may lead at the same time as new ones until they notice
    #[arg(long)]
    force: bool,
}

/// Asks, and removes all records of the cluster.
pub(crate) async fn run(session: &Session, arguments: &ResetArguments) -> Outcome {
    let store = session.place.open_existing().await?;
    let cluster = Cluster::new(store.clone(), &session.place.cluster)?;
    let name = plain(cluster.name());
    let failed = |error| Failure::new(Code::Unreachable, error);
    let records = sweep::keys(&store, cluster.name()).await.map_err(failed)?.len();
    if records > 0 {
        refuse_if_alive(&cluster, arguments.force).await?;
    }
    if records > 0 && !arguments.yes {
        ask(&name, &session.place.shown(), records)?;
    }
    let removed = sweep::sweep(&store, cluster.name()).await.map_err(failed)?;
    if session.json {
        session.print_json(&json!({ "cluster": cluster.name(), "removed": removed }));
    } else if removed == 0 {
        say!("The cluster {name} has no records.");
    } else {
        say!("The cluster {name} is gone: {removed} records were removed.");
    }
    Ok(())
}

async fn refuse_if_alive(cluster: &Cluster, force: bool) -> Outcome {
    // Records that can't be read are a reason to reset, not to refuse.
    let members = cluster.members().await.unwrap_or_default();
    let alive: Vec<String> = members
        .iter()
        .filter(|it| it.is_alive() && !it.is_overdue())
        .map(|it| plain(&it.node))
        .collect();
    if alive.is_empty() || force {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "the cluster {:?} has live members ({}): stop them first, or use --force",
        cluster.name(),
        alive.join(", ")
    )))
}

fn ask(name: &str, store: &str, records: usize) -> Outcome {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "this would remove the whole cluster, and there is no terminal to ask on: use --yes",
        ));
    }
    note!("{ODD}This removes the cluster {name} in {store}: {records} records, all terms.{ODD:#}");
    note!("Type the cluster's name to continue:");
    if out::typed()? == name {
        return Ok(());
    }
    Err(Failure::wrong("nothing was removed: that was not the cluster's name"))
}
