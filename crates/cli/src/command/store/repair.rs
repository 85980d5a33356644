//! `incumbent store repair`: records that can't be read, and what can be done about them.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use incumbent::{Cluster, Damage, Mended, Remedy, RepairOptions};
use serde_json::{Value, json};

use crate::exit::{Failure, Outcome};
use crate::json;
use crate::out::{self, note, plain, say};
use crate::session::Session;
use crate::span;
use crate::style::{BAD, DIM, GOOD, HEAD, ODD};
use crate::table;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Without --apply it only says what it would do. A record that can't be read is never treated as
absent, closed or free, and a repair respects that: a lease keeps its term or continues far above
it, and is free only when everybody who may hold it has stopped. Records of a newer version are left
alone.

Exits with 1 if any record is left that can't be read, unless the next leader of the cluster was
asked to write it anew.

Examples:
  incumbent store repair
  incumbent store repair --apply
  incumbent store repair --apply --evict --longest-ttl 15s --yes";

/// The highest term that a lease may be told to go on above: what every receiver of a fence can hold.
const HIGHEST: u64 = 1 << 52;

/// How records are repaired.
#[derive(Args, Debug)]
pub(crate) struct RepairArguments {
    /// Repair what can be repaired; asks first
    #[arg(long)]
    apply: bool,
    /// Don't ask
    #[arg(long, requires = "apply")]
    yes: bool,
    /// Evict live members if there is no gentler way; they join again by themselves
    #[arg(long)]
    evict: bool,
    /// The longest ttl of any node here, for a member whose own can't be read [default: 1h]
    #[arg(long, value_name = "SPAN", value_parser = ttl)]
    longest_ttl: Option<Duration>,
    /// Let a lease whose term can't be read continue above this [default: the milliseconds since
    /// 1970]
    #[arg(long, value_name = "TERM", value_parser = clap::value_parser!(u64).range(1..=HIGHEST))]
    term_above: Option<u64>,
    /// Treat records of a newer format as damaged: only if no newer version of incumbent runs here
    #[arg(long)]
    newer: bool,
}

fn ttl(text: &str) -> Result<Duration, String> {
    let longest = RepairOptions::default().longest_ttl;
    let span = span::parse(text)?;
    if span > longest {
        return Err(format!("no node has a longer one than {}", span::text(longest)));
    }
    Ok(span)
}

impl RepairArguments {
    fn options(&self) -> RepairOptions {
        let mut options = RepairOptions::default();
        options.evict = self.evict;
        options.longest_ttl = self.longest_ttl.unwrap_or(options.longest_ttl);
        options.term_above = self.term_above;
        options.newer = self.newer;
        options
    }
}

/// Lists what can't be read, and repairs it if that is asked for.
pub(crate) async fn run(session: &Session, arguments: &RepairArguments) -> Outcome {
    let cluster = if arguments.apply {
        session.place.cluster_to_change().await?
    } else {
        session.place.cluster().await?
    };
    let options = arguments.options();
    let damaged = cluster.damage(&options).await?;
    if damaged.is_empty() || !arguments.apply {
        tell_plan(session, &cluster, &damaged, &options);
        if damaged.is_empty() {
            return Ok(());
        }
        if !session.json {
            let next = format!("Nothing was changed.{}", next(&damaged, &options));
            say!("\n{}", table::paragraph(&next, 0));
        }
        return Err(Failure::said());
    }
    if !arguments.yes {
        // A question has no place between two values.
        let asks = std::io::stdin().is_terminal() && !session.json;
        if asks {
            tell_plan(session, &cluster, &damaged, &options);
        }
        ask(&cluster, asks)?;
    }
    let mended = cluster.repair(&options).await?;
    let left = mended.iter().any(|(_, it)| !matches!(it, Mended::Done));
    if session.json {
        let records: Vec<Value> = mended.iter().map(|(it, how)| as_json(it, Some(*how))).collect();
        session.print_json(&json!({
            "cluster": cluster.name(),
            "applied": true,
            "records": records,
        }));
    } else {
        mended.iter().for_each(|(damage, how)| tell_mended(damage, *how));
    }
    if left { Err(Failure::said()) } else { Ok(()) }
}

fn tell_plan(session: &Session, cluster: &Cluster, damaged: &[Damage], options: &RepairOptions) {
    let name = plain(cluster.name());
    if session.json {
        let records: Vec<Value> = damaged.iter().map(|damage| as_json(damage, None)).collect();
        session.print_json(&json!({
            "cluster": cluster.name(),
            "applied": false,
            "records": records,
        }));
        return;
    }
    if damaged.is_empty() {
        say!("All records of the cluster {name} can be read.");
        return;
    }
    say!("{HEAD}Records of the cluster {name} that can't be read: {}{HEAD:#}", damaged.len());
    for damage in damaged {
        let unreadable = &damage.unreadable;
        let size = if damage.bytes == 1 { "1 byte" } else { &format!("{} bytes", damage.bytes) };
        say!("\n{BAD}{}{BAD:#}  {DIM}{size}{DIM:#}", plain(&unreadable.key));
        say!("  wrong:  {}", table::paragraph(&unreadable.reason, 10));
        let repair = format!("{}. {}", deed(&damage.remedy), damage.meaning);
        say!("  repair: {}", table::paragraph(&repair, 10));
        if damage.remedy.evicts() && !options.evict {
            say!("          {ODD}Only with --evict.{ODD:#}");
        }
    }
}

/// What to type next.
fn next(damaged: &[Damage], options: &RepairOptions) -> &'static str {
    let doable = |damage: &&Damage| damage.remedy != Remedy::Leave;
    let gentle = |damage: &Damage| options.evict || !damage.remedy.evicts();
    let all: Vec<bool> = damaged.iter().filter(doable).map(gentle).collect();
    match (all.contains(&true), all.contains(&false)) {
        (true, false) => " `incumbent store repair --apply` does it.",
        (true, true) => {
            " `incumbent store repair --apply` does what needs no eviction, and with --evict the rest."
        }
        (false, true) => " `incumbent store repair --apply --evict` does it.",
        (false, false) => "",
    }
}

fn deed(remedy: &Remedy) -> &'static str {
    match remedy {
        Remedy::Leave => "leave it",
        Remedy::Delete => "delete it",
        Remedy::Replace => "replace it with an empty one",
        Remedy::Close { .. } => "close the member",
        Remedy::Evict { .. } => "evict its member",
        Remedy::Renew => "let a new leader write it",
        Remedy::Keep { .. } => "keep what counts",
        Remedy::Raise { .. } => "write the lease again, above all its terms",
        _ => "see the documentation",
    }
}

fn tell_mended(damage: &Damage, how: Mended) {
    let key = plain(&damage.unreadable.key);
    match how {
        Mended::Done => match &damage.remedy {
            Remedy::Renew => {
                say!("{GOOD}asked for{GOOD:#}  {key}: the next leader of the cluster writes it")
            }
            Remedy::Evict { .. } => say!("{GOOD}evicted{GOOD:#}    the member of {key}"),
            _ => say!("{GOOD}repaired{GOOD:#}   {key}"),
        },
        Mended::Changed => {
            say!("{ODD}changed{ODD:#}    {key}: somebody wrote it meanwhile, look again")
        }
        Mended::Withheld => say!("{ODD}withheld{ODD:#}   {key}: it needs --evict"),
        Mended::Left => {
            let why = format!("{key}: {}", damage.meaning);
            say!("{ODD}left{ODD:#}       {}", table::paragraph(&why, 11))
        }
        _ => say!("{ODD}left{ODD:#}       {key}"),
    };
}

fn as_json(damage: &Damage, how: Option<Mended>) -> Value {
    let (ttl, term, evicting) = match &damage.remedy {
        Remedy::Close { ttl } => (Some(*ttl), None, Vec::new()),
        Remedy::Keep { term, .. } => (None, Some(*term), Vec::new()),
        Remedy::Raise { above, evicting, wait } => (Some(*wait), Some(*above), evicting.clone()),
        Remedy::Evict { member } => (None, None, vec![member.clone()]),
        _ => (None, None, Vec::new()),
    };
    json!({
        "key": damage.unreadable.key,
        "reason": damage.unreadable.reason,
        "bytes": damage.bytes,
        "remedy": damage.remedy.as_str(),
        "meaning": damage.meaning,
        "evicting": evicting.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>(),
        "wait_ms": ttl.map(json::millis),
        "term": term,
        "outcome": how.map(Mended::as_str),
    })
}

fn ask(cluster: &Cluster, can_ask: bool) -> Outcome {
    if !can_ask {
        return Err(Failure::usage(
            "this changes records that nodes depend on, and there is nobody to ask: look at what it \
             would do without --apply, and then use --yes",
        ));
    }
    let name = plain(cluster.name());
    note!("\n{ODD}Repair them as described? Type the cluster's name to continue:{ODD:#}");
    if out::typed()? == name {
        return Ok(());
    }
    Err(Failure::wrong("nothing was changed: that was not the cluster's name"))
}
