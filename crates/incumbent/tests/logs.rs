//! What an operator reads in the log: errors with their causes, losses as warnings, and why a
//! candidacy is over.

#![allow(clippy::unwrap_used, reason = "this is test code, parts of it outside of tests")]

mod common;

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use common::timeline::{MINUTE, Wall};
use common::{Moody, builder, memory, soon, until};
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata, Subscriber, span};

/// All that was logged, a line each.
type Lines = Arc<Mutex<Vec<(Level, String)>>>;

struct Log(Lines);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push((*event.metadata().level(), line.0));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

/// The log of this process.
fn log() -> Lines {
    static LINES: OnceLock<Lines> = OnceLock::new();
    let lines = LINES.get_or_init(|| {
        let lines = Lines::default();
        tracing::subscriber::set_global_default(Log(Arc::clone(&lines))).unwrap();
        lines
    });
    Arc::clone(lines)
}

/// Waits for a line with all of this in it.
async fn logged(level: Level, parts: &[&str]) {
    let lines = log();
    let is_it = |(its, line): &(Level, String)| {
        *its == level && parts.iter().all(|part| line.contains(part))
    };
    until(&format!("{level} {parts:?}"), || lines.lock().unwrap().iter().any(is_it)).await;
}

/// As drivers have them: it says nothing, and its cause says it all.
#[derive(Debug)]
struct DbError(std::io::Error);

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("db error")
    }
}

impl Error for DbError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o32_errors_of_work_are_told_with_their_causes() {
    let _ = log();
    let node = soon(builder("a").join(&memory())).await.unwrap();
    let _lead = node
        .lead("chained", |_| async {
            Err(DbError(std::io::Error::other("column \"x\" does not exist")).into())
        })
        .unwrap();
    logged(Level::ERROR, &["lease=chained", "db error: column", "does not exist"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o32_a_candidacy_that_ok_ended_for_good_says_so() {
    let _ = log();
    let node = soon(builder("b").join(&memory())).await.unwrap();
    let lead = node.lead("completed", |_| async { Ok(()) }).unwrap();
    soon(lead.finished()).await;
    logged(Level::INFO, &["lease=completed", "returned Ok", "does not contend"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o32_an_abrupt_loss_is_a_warning() {
    let _ = log();
    let store = Moody::new();
    let node = soon(builder("c").join(store.clone())).await.unwrap();
    let mut campaign = node.campaign("abrupt").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    store.hang();
    soon(leadership.lost()).await;
    logged(Level::WARN, &["lease=abrupt", "action=\"lost\"", "abrupt=true"]).await;
    drop(leadership);
    // One that was asked for is none.
    store.recover();
    let mut campaign = node.campaign("orderly").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    drop(leadership);
    drop(campaign);
    logged(Level::INFO, &["lease=orderly", "action=\"lost\"", "abrupt=false"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_of_the_far_future_is_an_error_with_whose_clock_it_was() {
    let _ = log();
    let (store, wrong, right) = (memory(), Wall::at(500_000), Wall::at(0));
    let ahead = soon(builder("ahead").join(&store)).await.unwrap();
    let _lead = ahead.periodic("future", wrong.minutely(), |_| async { Ok(()) }).unwrap();
    let done = || async { ahead.cluster().last_success("future").await.unwrap().is_some() };
    soon(async {
        while !done().await {
            // Whenever it has begun to lead, this is a tick.
            wrong.advance(MINUTE);
            common::pause(100).await;
        }
    })
    .await;
    soon(ahead.leave()).await.unwrap();
    let node = soon(builder("right").join(&store)).await.unwrap();
    let _lead = node.periodic("future", right.minutely(), |_| async { Ok(()) }).unwrap();
    let parts = ["lease=future", "recorded_by=ahead", "lies in the future", "next=Some"];
    logged(Level::ERROR, &parts).await;
}
