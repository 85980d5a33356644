//! Hand-overs between two processes on stores that push nothing, with hints between nodes and without.

use std::thread::ScopedJoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use incumbent_proving::Server;
use incumbent_proving::server::{azurite, mariadb, pgbouncer, postgres};

use super::field::{Deadline, Field};
use super::section::{Section, finite, shown};
use super::{chart, chart::Bar};
use crate::partner::{self, Partner};
use crate::spread::Spread;

/// Starts a store and its servers.
type Start = fn() -> Quiet;

/// A store that pushes nothing, on servers that end with it.
struct Quiet {
    title: &'static str,
    url: String,
    _servers: Vec<Server>,
}

pub(super) fn measure(field: &Field, samples: usize, until: Deadline) -> Section {
    let starts: [(&str, Start); 3] =
        [("MariaDB", mariadb), ("Azure Blob (Azurite)", azurite), (BOUNCED, bounced)];
    let started = starts.map(|(title, start)| {
        let started = std::panic::catch_unwind(start);
        if started.is_err() {
            field.fails_all(&format!("{title}: left out: its server doesn't start; see above"));
        }
        started.ok()
    });
    let mut table = "| | median with hints | p99 | max | median without | p99 | max | samples each \
                     | without, in with |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut bars = Vec::new();
    // All at once: most of the time is waiting, and whatever the machine does meets all.
    let found: Vec<_> = std::thread::scope(|scope| {
        let hand_overs = |quiet: &Quiet, hints: &'static str| {
            let url = quiet.url.clone();
            scope.spawn(move || hand_overs(&url, hints, samples, until))
        };
        let running: Vec<_> = started
            .iter()
            .flatten()
            .map(|quiet| (quiet, ["auto", "off"].map(|hints| hand_overs(quiet, hints))))
            .collect();
        let ended = |thread: ScopedJoinHandle<'_, Result<Spread>>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("its measurement panicked")))
        };
        running.into_iter().map(|(quiet, both)| (quiet, both.map(ended))).collect()
    });
    for (quiet, both) in found {
        let [hinted, polled] = match both {
            [Ok(hinted), Ok(polled)] => [hinted, polled],
            [Err(error), _] | [_, Err(error)] => {
                field.fails_all(&format!("{}: {error:#}", quiet.title));
                continue;
            }
        };
        let of = |spread: &Spread| [0.5, 0.99, 1.0].map(|share| shown(spread.quantile(share)));
        let few = hinted.len().min(polled.len());
        table.push_str(&format!(
            "| **incumbent on {}** | {} | {} | {few} | {:.0} × |\n",
            quiet.title,
            of(&hinted).join(" | "),
            of(&polled).join(" | "),
            polled.median() / hinted.median()
        ));
        for (spread, how) in [(&hinted, "hints"), (&polled, "no hints")] {
            bars.push(Bar {
                label: format!("{}, {how}", quiet.title),
                value: finite(spread.median()),
                most: finite(spread.quantile(1.0)),
                text: shown(spread.median()),
                ours: how == "hints",
            });
        }
    }
    let title = "A lease is given up until another process has it, on stores that push nothing";
    Section { key: "hints", table, chart: Some(chart::svg(title, &bars)) }
}

const BOUNCED: &str = "PostgreSQL behind PgBouncer";

fn mariadb() -> Quiet {
    let server = mariadb::start(&[]);
    let url = mariadb::url(&server, "root");
    Quiet { title: "MariaDB", url, _servers: vec![server] }
}

fn azurite() -> Quiet {
    let server = azurite::start();
    let url = azurite::url(server.port(), "incumbent");
    Quiet { title: "Azure Blob (Azurite)", url, _servers: vec![server] }
}

fn bounced() -> Quiet {
    let server = postgres::start(&[]);
    let bouncer = pgbouncer::before(server.port(), "default_pool_size = 20");
    let url = postgres::url(&bouncer, "postgres");
    Quiet { title: BOUNCED, url, _servers: vec![bouncer, server] }
}

/// Milliseconds from the moment in which one process gives a lease up until another has it.
fn hand_overs(url: &str, hints: &str, samples: usize, until: Deadline) -> Result<Spread> {
    let cluster = format!("hints-{hints}-{}", incumbent::clock::now().as_nanos());
    let player = |name: &str| {
        let mut player =
            Partner::start_with(&["player", url, &cluster, name], &[("INCUMBENT_HINTS", hints)])?;
        player.answer()?;
        Ok::<_, anyhow::Error>(player)
    };
    let mut players = [player("a")?, player("b")?];
    let mut times = Vec::new();
    for number in 0..samples {
        if until.is_over() && number > 0 {
            break;
        }
        let [holder, waiter] = &mut players;
        let (holder, waiter) = if number % 2 == 0 { (holder, waiter) } else { (waiter, holder) };
        // The next look of who waits is at any time after this.
        let settle = Duration::from_millis(400 + 37 * (number as u64 * 7 % 19));
        let micros = partner::hand_over_after(holder, waiter, &format!("lease-{number}"), settle)?;
        times.push(micros / 1000.0);
    }
    Ok(Spread::new(times))
}
