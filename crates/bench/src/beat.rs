//! One beat of a node that holds 1, 100 or 10,000 leases.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use incumbent::blocking::Wait;
use incumbent::{Campaign, Leadership};
use incumbent::{Node, clock};
use incumbent_sqlite::SqliteStore;

use crate::counting::{Beat, Counting};
use crate::report::Report;
use crate::spread::Spread;

/// A node, and what keeps its leases.
struct Holder {
    leases: usize,
    store: Counting,
    node: Node,
    _held: Vec<(Campaign, Leadership)>,
}

pub(crate) fn measure(beats: usize, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let began = clock::now();
    let holders = [1, 100, 10_000]
        .map(|leases| Holder::start(directory.path(), leases))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let taking = clock::now().since(began).as_secs_f64();
    for holder in &holders {
        holder.store.take();
    }
    // All of them beat beside each other, so that whatever the machine does meets all of them.
    while holders.iter().any(|holder| holder.store.count() < beats) {
        pause(Duration::from_millis(50));
    }
    let measured: Vec<Vec<Beat>> = holders.iter().map(|holder| holder.store.take()).collect();
    let keys = [
        ("beat_1_bytes", "beat_1_statements", "beat_1_us"),
        ("beat_100_bytes", "beat_100_statements", "beat_100_us"),
        ("beat_10000_bytes", "beat_10000_statements", "beat_10000_us"),
    ];
    let mut medians = Vec::new();
    for ((holder, beats), (bytes, statements, micros)) in holders.iter().zip(&measured).zip(keys) {
        let of = |value: fn(&Beat) -> f64| Spread::new(beats.iter().map(value).collect());
        let leases = holder.leases;
        let goal = if leases == 1 { "" } else { "as with 1, but for digits" };
        let what = format!("a beat with {leases} leases: bytes, median");
        report.add_with_goal(bytes, &what, of(|beat| beat.bytes as f64).median(), "bytes", goal);
        let goal = if leases == 1 { "" } else { "as with 1" };
        let count = of(|beat| (beat.writes + beat.reads) as f64).quantile(1.0);
        report.add_with_goal(statements, "  statements, at most", count, "", goal);
        let median = of(|beat| beat.micros).median();
        report.add(micros, "  time, median", median, "us");
        medians.push(median);
    }
    if let [one, hundred, many] = medians[..] {
        report.add_with_goal(
            "beat_100_ratio",
            "time with 100 leases to 1",
            hundred / one,
            "x",
            "0.9 to 1.1",
        );
        report.add_with_goal(
            "beat_10000_ratio",
            "time with 10,000 leases to 1",
            many / one,
            "x",
            "0.9 to 1.1",
        );
    }
    report.add("taking_s", "taking 10,101 leases, one member each", taking, "s");
    for holder in holders {
        drop(holder._held);
        holder.node.leave().wait()?;
    }
    Ok(())
}

impl Holder {
    fn start(directory: &Path, leases: usize) -> Result<Self> {
        let file = directory.join(format!("{leases}.db"));
        let store = Counting::new(SqliteStore::open(&file)?);
        let builder = Node::builder()
            .ttl(Duration::from_secs(3))
            .beat(Duration::from_millis(100))
            .without_membership();
        let node = builder.join(store.clone()).wait()?;
        // All stand before the first is waited for, so that takes go together.
        let campaigns = (0..leases)
            .map(|number| node.campaign(format!("lease-{number}")))
            .collect::<Result<Vec<_>, _>>()?;
        let mut held = Vec::with_capacity(leases);
        for mut campaign in campaigns {
            let leadership = campaign.elected().wait()?;
            held.push((campaign, leadership));
        }
        Ok(Self { leases, store, node, _held: held })
    }
}

#[allow(clippy::disallowed_methods, reason = "nothing else to do while beats are counted")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
