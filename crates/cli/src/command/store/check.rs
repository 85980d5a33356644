//! `incumbent store check`: the conformance kit, tried on the user's own store.

use std::time::Duration;

use incumbent::OpenStore;
use incumbent::store::{Capabilities, StoreError};
use incumbent_testkit::{Conformance, Progress, Report, Row, Verdict};
use serde_json::{Value, json};

use super::handle::UrlOpener;
use super::losses;
use crate::exit::{Code, Failure, Outcome};
use crate::measure::{self, Effort, Measured, Spread};
use crate::out::{plain, say};
use crate::session::Session;
use crate::span;
use crate::style::{BAD, DIM, GOOD, HEAD, ODD};
use crate::sweep;
use crate::table;

/// What `--help` shows below.
pub(crate) const EXAMPLES: &str = "\
Works in clusters of its own and removes them again; other clusters in the store are not touched.
Takes from some seconds to a few minutes, because some of it has to wait. Exits with 1 if the store
broke
a property.

Examples:
  incumbent store check sqlite:app.db
  incumbent store check postgres://app@db/app
  incumbent store check sqlite:app.db --json | jq .measured";

/// How much is measured.
const EFFORT: Effort = Effort { most: 200, within: Duration::from_secs(10) };

/// Tries all properties and measures.
pub(crate) async fn run(session: &Session) -> Outcome {
    let url = &session.place.url;
    if url.starts_with("solo:") {
        return Err(Failure::usage(
            "solo: is a new store each time it is opened, so there is nothing to check: try \
             memory: instead",
        ));
    }
    // Opened first by the usual way, which says best what is wrong with it.
    let store = session.place.open().await?;
    let other = session.place.open().await?;
    let talk = !session.json && !session.quiet;
    if talk {
        say!("{HEAD}checking {}{HEAD:#}", plain(&session.place.shown()));
    }
    let kit = Conformance::new(UrlOpener { url: url.clone() }).on_progress(move |progress| {
        if let (Progress::Ended(row), true) = (progress, talk) {
            print_row(row);
        }
    });
    let report = kit.run().await;
    let measured = measured(&store, &other).await;
    let measured = measured.map_err(|error| Failure::new(Code::Unreachable, error))?;
    let capabilities = store.capabilities();
    let mut losses = losses::warnings(&*store);
    losses.extend(losses::of_kind(capabilities.kind).iter().map(|text| (*text).to_owned()));
    if session.json {
        session.print_json(&report_json(&report, &capabilities, &losses, &measured));
    } else {
        print(&report, &capabilities, &losses, &measured);
    }
    if report.is_passed() { Ok(()) } else { Err(Failure::said()) }
}

/// What was measured, with a batch: how many records, and how long it took.
type All = (Measured, (usize, Duration));

/// Measures in a cluster of its own, and removes it again.
async fn measured(store: &OpenStore, other: &OpenStore) -> Result<All, StoreError> {
    let cluster = sweep::scratch("check");
    let measured = async {
        let measured = measure::measure(&**store, &**other, &cluster, EFFORT).await?;
        Ok((measured, measure::batch(&**store, &cluster).await?))
    };
    let measured = measured.await;
    sweep::sweep(store, &cluster).await?;
    measured
}

fn print_row(row: &Row) {
    let property = row.property;
    let about = table::fit(row.about, 36);
    match &row.verdict {
        Verdict::Passed => {
            say!("  {GOOD}ok{GOOD:#}       {property:<24} {DIM}{about}{DIM:#}")
        }
        Verdict::Skipped(reason) => {
            say!("  {ODD}skipped{ODD:#}  {property:<24} {DIM}{}{DIM:#}", table::fit(reason, 36))
        }
        Verdict::Failed(violation) => {
            say!("  {BAD}FAILED{BAD:#}   {property:<24} {about}");
            say!("           {BAD}{}{BAD:#}", plain(&violation.to_string()))
        }
    };
}

fn print(report: &Report, capabilities: &Capabilities, losses: &[String], measured: &All) {
    let (measured, (records, took)) = measured;
    let yes = |offered: bool| if offered { "yes" } else { "no" };
    let size = capabilities.max_value / 1024;
    let (passed, failed) = (report.passed().count(), report.failed().count());
    let skipped = report.skipped().count();
    say!("\n{HEAD}what it offers{HEAD:#}");
    say!("  kind                        {}", capabilities.kind);
    say!("  shared by processes         {}", yes(capabilities.shared));
    say!("  survives a crash            {}", yes(capabilities.durable));
    say!("  tells of changes (push)     {}", yes(capabilities.push));
    say!("  tells the age of records    {}", yes(capabilities.clock));
    say!("  operations in one exchange  {}", capabilities.max_operations);
    say!("  largest value               {size} kB");
    say!("\n{HEAD}what it can lose{HEAD:#}");
    for loss in losses {
        say!("  {}", plain(loss));
    }
    say!("\n{HEAD}what was measured{HEAD:#}");
    say!("  one beat                    {}", spread(measured.beat));
    let batch = format!("{records} new records at once");
    say!("  {batch:<27} {}", span::text(*took));
    let push = measured.push.map_or("nothing came".to_owned(), spread);
    say!("  a change is announced after {push}");
    let style = if report.is_passed() { GOOD } else { BAD };
    say!("\n{style}{passed} passed, {failed} failed{style:#}, {skipped} skipped");
}

fn spread(spread: Spread) -> String {
    format!("{} (p50), {} (p99)", span::text(spread.p50), span::text(spread.p99))
}

fn report_json(
    report: &Report,
    capabilities: &Capabilities,
    losses: &[String],
    measured: &All,
) -> Value {
    let (measured, (records, took)) = measured;
    json!({
        "kind": capabilities.kind,
        "passed": report.passed().count(),
        "failed": report.failed().count(),
        "skipped": report.skipped().count(),
        "seed": report.seed,
        "properties": report.rows.iter().map(row_json).collect::<Vec<_>>(),
        "offers": {
            "shared": capabilities.shared,
            "durable": capabilities.durable,
            "push": capabilities.push,
            "clock": capabilities.clock,
            "max_operations": capabilities.max_operations,
            "max_value": capabilities.max_value,
        },
        "can_lose": losses,
        "measured": {
            "round_trip": measured.beat.json(),
            "batch": { "records": records, "ms": took.as_secs_f64() * 1e3 },
            "push": measured.push.map(Spread::json),
        },
    })
}

fn row_json(row: &Row) -> Value {
    let (verdict, why) = match &row.verdict {
        Verdict::Passed => ("passed", None),
        Verdict::Failed(violation) => ("failed", Some(violation.to_string())),
        Verdict::Skipped(reason) => ("skipped", Some(reason.clone())),
    };
    json!({ "property": row.property, "about": row.about, "verdict": verdict, "why": why })
}
