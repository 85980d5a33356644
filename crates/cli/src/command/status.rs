//! `incumbent status`: members and leases as they stand.

use std::collections::BTreeSet;

use incumbent::store::Obstacle;
use incumbent::{DutyStanding, LeaseState, Member, Unreadable, Workload};
use serde_json::{Value, json};

use crate::command::{duties, intents};
use crate::exit::Outcome;
use crate::out::{plain, say};
use crate::place::Place;
use crate::session::Session;
use crate::span;
use crate::standing;
use crate::style::{DIM, HEAD, ODD, PLAIN};
use crate::table::{Cell, Table};
use crate::unread;
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
    /// The records that can't be read, in the order of their keys.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Whose locks keep writes waiting.
    pub(crate) obstacles: Vec<Obstacle>,
}

impl Snapshot {
    /// Reads all that the command shows.
    pub(crate) async fn read(cluster: &incumbent::Cluster) -> Outcome<Self> {
        let members = cluster.members().await?;
        let leases = cluster.leases().await?;
        let mut work = cluster.workload().await?;
        let mut unreadable = std::mem::take(&mut work.unreadable);
        unreadable.extend(leases.iter().filter_map(|state| state.unreadable.clone()));
        unreadable.sort_by(|one, other| one.key.cmp(&other.key));
        unreadable.dedup_by(|one, other| one.key == other.key);
        Ok(Self { members, leases, work, unreadable, obstacles: Vec::new() })
    }

    /// Whether nobody has ever joined.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.leases.is_empty() && self.unreadable.is_empty()
    }

    /// As JSON.
    pub(crate) fn json(&self, place: &Place) -> Value {
        json!({
            "cluster": place.cluster,
            "store": place.shown(),
            "members": self.members.iter().map(|it| self.member_json(it)).collect::<Vec<_>>(),
            "leases": self.leases,
            "duties": self.work.duties,
            "intents": self.work.intents.iter().map(intents::as_json).collect::<Vec<_>>(),
            "unreadable": &self.unreadable,
            "obstacles": self.obstacles.iter().map(obstacle_json).collect::<Vec<_>>(),
        })
    }

    /// A member with what operators want of its node, and what it carries.
    fn member_json(&self, member: &Member) -> Value {
        let mut value = json!(member);
        if let Some(fields) = value.as_object_mut() {
            let asked = standing::asked(member, &self.work.intents);
            fields.insert("cordoned".to_owned(), json!(asked.contains(&"cordoned")));
            fields.insert("drained".to_owned(), json!(asked.contains(&"drained")));
            fields.insert("duties".to_owned(), json!(self.duties_of(member).count()));
            fields.insert("load".to_owned(), json!(self.load_of(member)));
        }
        value
    }

    /// The duties that a member has, or is to have.
    pub(crate) fn duties_of(&self, member: &Member) -> impl Iterator<Item = &DutyStanding> {
        self.work.duties.iter().filter(|duty| duty.member.as_ref() == Some(&member.id))
    }

    /// The weight of its duties, and what it carries beside them.
    pub(crate) fn load_of(&self, member: &Member) -> u64 {
        let beside = self.work.loads.get(&member.id).copied().unwrap_or_default();
        self.duties_of(member).map(|duty| duty.weight).fold(beside, u64::saturating_add)
    }
}

/// Says that nobody has ever joined, which may be a matter of a mistyped name.
pub(crate) fn empty(place: &Place) -> String {
    let (name, store) = (plain(&place.cluster), plain(&place.shown()));
    format!(
        "The cluster {name} in {store} is empty: nobody has ever joined it. If that is \
         unexpected, check the name of the cluster (--cluster) and the store (--store)."
    )
}

/// Prints members and leases.
pub(crate) async fn run(session: &Session) -> Outcome {
    let cluster = session.place.cluster().await?;
    let mut snapshot = Snapshot::read(&cluster).await?;
    snapshot.obstacles = cluster.obstacles().await?;
    if session.json {
        session.print_json(&snapshot.json(&session.place));
        return Ok(());
    }
    if snapshot.is_empty() && snapshot.work.intents.is_empty() {
        say!("{}", empty(&session.place));
        return Ok(());
    }
    if !session.quiet {
        let (name, store) = (plain(&session.place.cluster), plain(&session.place.shown()));
        say!("{HEAD}cluster {name}{HEAD:#}  {DIM}{store}{DIM:#}\n");
    }
    print_members(&snapshot);
    say!("");
    print_leases(&snapshot);
    if !snapshot.work.duties.is_empty() {
        say!("");
        duties::print(&snapshot.work.duties);
    }
    if !snapshot.work.intents.is_empty() {
        say!("");
        intents::print(&snapshot.work.intents);
    }
    unread::print(&snapshot.unreadable);
    for obstacle in &snapshot.obstacles {
        say!("\n{ODD}A write waits: {}.{ODD:#}", plain(&obstacle.to_string()));
    }
    Ok(())
}

fn obstacle_json(obstacle: &Obstacle) -> Value {
    let (cluster, key) = obstacle.record.clone().unzip();
    json!({ "cluster": cluster, "key": key, "holder": obstacle.holder })
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
            Cell::toned(standing::member(member, &snapshot.work.intents)),
            cell(&age),
            cell(&member.ttl.map_or("-".to_owned(), span::setting)),
            cell(&when::ago(member.joined_ms)),
            cell(member.address.as_deref().unwrap_or("-")),
        ]);
    }
    table.print();
    print_service(snapshot);
}

/// What the nodes serve and carry, if any serves something.
fn print_service(snapshot: &Snapshot) {
    let serves = |member: &&Member| member.is_alive() && !member.families.is_empty();
    let serving: Vec<&Member> = snapshot.members.iter().filter(serves).collect();
    if serving.is_empty() {
        return;
    }
    say!("");
    let mut table = Table::new(["NODE", "DUTIES", "LOAD", "SERVES"]);
    for member in serving {
        let duties = snapshot.duties_of(member).count();
        table.row([
            member.node.as_str().into(),
            of(duties, member.max_duties).into(),
            of(snapshot.load_of(member), member.capacity).into(),
            families(member).into(),
        ]);
    }
    table.print();
}

/// `3`, or `3 of 5`.
pub(crate) fn of(some: impl ToString, most: Option<impl ToString>) -> String {
    let some = some.to_string();
    most.map(|most| format!("{some} of {}", most.to_string())).unwrap_or(some)
}

/// `mail, projection 3`.
fn families(member: &Member) -> String {
    let family = |(name, versions): (&String, &BTreeSet<String>)| {
        std::iter::once(name.clone()).chain(versions.iter().cloned()).collect::<Vec<_>>().join(" ")
    };
    member.families.iter().map(family).collect::<Vec<_>>().join(", ")
}

fn print_leases(snapshot: &Snapshot) {
    if snapshot.leases.is_empty() {
        say!("{DIM}no leases: nobody has ever campaigned{DIM:#}");
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
            cell(&if state.term == 0 { "-".to_owned() } else { state.term.to_string() }),
            cell(&leader.and_then(|it| it.since_ms).map_or("-".to_owned(), when::ago)),
            cell(leader.and_then(|it| it.address.as_deref()).unwrap_or("-")),
        ]);
    }
    table.print();
}
