//! `incumbent status`: members and leases as they stand.

use incumbent::{LeaseState, Member, Workload};
use serde_json::{Value, json};

use crate::command::duties;
use crate::exit::Outcome;
use crate::json;
use crate::out::{plain, say};
use crate::place::Place;
use crate::session::Session;
use crate::span;
use crate::standing;
use crate::style::{DIM, HEAD, PLAIN};
use crate::table::{Cell, Table};
use crate::when;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Examples:
  incumbent status
  incumbent --store sqlite:app.db --cluster billing status
  incumbent status --json | jq '.leases[] | {lease, leader: .leader.node}'";

/// All there is to see at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// All members that are still visible.
    pub(crate) members: Vec<Member>,
    /// All leases that anybody ever held.
    pub(crate) leases: Vec<LeaseState>,
    /// All duties that anybody knows, and what became of them.
    pub(crate) work: Workload,
}

impl Snapshot {
    /// Looks.
    pub(crate) async fn read(cluster: &incumbent::Cluster) -> Outcome<Self> {
        let members = cluster.members().await?;
        let leases = cluster.leases().await?;
        let work = cluster.workload().await?;
        Ok(Self { members, leases, work })
    }

    /// As JSON.
    pub(crate) fn json(&self, place: &Place) -> Value {
        json!({
            "cluster": place.cluster,
            "store": place.shown(),
            "members": self.members.iter().map(json::member).collect::<Vec<_>>(),
            "leases": self.leases.iter().map(json::lease).collect::<Vec<_>>(),
            "duties": self.work.duties.iter().map(duties::standing_json).collect::<Vec<_>>(),
        })
    }
}

/// Prints members and leases.
pub(crate) async fn run(session: &Session) -> Outcome {
    let cluster = session.place.cluster().await?;
    let snapshot = Snapshot::read(&cluster).await?;
    if session.json {
        session.print_json(&snapshot.json(&session.place));
        return Ok(());
    }
    let (name, store) = (plain(&session.place.cluster), plain(&session.place.shown()));
    if snapshot.members.is_empty() && snapshot.leases.is_empty() {
        say!("The cluster {name} in {store} is empty: nobody ever joined it.");
        return Ok(());
    }
    if !session.quiet {
        say!("{HEAD}cluster {name}{HEAD:#}  {DIM}{store}{DIM:#}\n");
    }
    print_members(&snapshot);
    say!("");
    print_leases(&snapshot);
    if !snapshot.work.duties.is_empty() {
        say!("");
        duties::print(&snapshot.work.duties);
    }
    Ok(())
}

fn print_members(snapshot: &Snapshot) {
    if snapshot.members.is_empty() {
        say!("{DIM}no members{DIM:#}");
        return;
    }
    let mut table = Table::new(["NODE", "MEMBER", "STATE", "HEARD", "TTL", "JOINED", "ADDRESS"]);
    for member in &snapshot.members {
        let style = if member.is_alive() { PLAIN } else { DIM };
        let cell = |text: &str| Cell::styled(text, style);
        let id = member.id.as_str();
        let age = member.age.map_or("-".to_owned(), |age| format!("{} ago", span::text(age)));
        table.row([
            cell(if member.node.is_empty() { "?" } else { &member.node }),
            cell(id.get(..8).unwrap_or(id)),
            Cell::toned(standing::member(member)),
            cell(&age),
            cell(&member.ttl.map_or("-".to_owned(), span::setting)),
            cell(&when::ago(member.joined_ms)),
            cell(member.address.as_deref().unwrap_or("-")),
        ]);
    }
    table.print();
}

fn print_leases(snapshot: &Snapshot) {
    if snapshot.leases.is_empty() {
        say!("{DIM}no leases: nobody ever campaigned{DIM:#}");
        return;
    }
    let mut table = Table::new(["LEASE", "LEADER", "TERM", "SINCE", "WHERE"]);
    // What incumbent keeps for itself comes last.
    let own = |state: &&LeaseState| state.lease.starts_with("incumbent/");
    let others = snapshot.leases.iter().filter(|state| !own(state));
    for state in others.chain(snapshot.leases.iter().filter(own)) {
        let style = if own(&state) { DIM } else { PLAIN };
        let cell = |text: &str| Cell::styled(text, style);
        let leader = state.leader.as_ref();
        table.row([
            cell(&state.lease),
            Cell::toned(standing::leader(state)),
            cell(&state.term.to_string()),
            cell(&leader.and_then(|it| it.since_ms).map_or("-".to_owned(), when::ago)),
            cell(leader.and_then(|it| it.address.as_deref()).unwrap_or("-")),
        ]);
    }
    table.print();
}
