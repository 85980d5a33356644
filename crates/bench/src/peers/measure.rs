//! Each measure, over the whole field.

use std::time::Duration;

use super::away::{self, Absence};
use super::change::{self, Change, Sample};
use super::chart::Bar;
use super::contender::{Contender, Store};
use super::field::{Deadline, Field};
use super::load::{self, Load};
use super::section::{self, Section, finite, shown, times_ours};
use super::{Measure, Sizes, growth, hinting, idle, machine, placement};
use crate::spread::Spread;

/// Takes a measure of all.
pub(super) fn take(measure: Measure, field: &Field, sizes: Sizes, until: Deadline) -> Vec<Section> {
    let sections = sections(measure, field, sizes, until);
    let failures = field.failures();
    sections.into_iter().map(|section| section.noting(&failures)).collect()
}

fn sections(measure: Measure, field: &Field, sizes: Sizes, until: Deadline) -> Vec<Section> {
    match measure {
        Measure::Kill => {
            let found = changes(field, Change::Kill, sizes, until);
            let title =
                "kill -9 of the leader until another leads, ttl 10 s (median, and the worst)";
            vec![section::times("kill", title, &next(&found))]
        }
        Measure::Pause => paused(&changes(field, Change::Pause, sizes, until)),
        Measure::Resign => {
            let found = changes(field, Change::Resign, sizes, until);
            let title = "SIGTERM of the leader until another leads (median, and the worst)";
            vec![section::times("resign", title, &next(&found))]
        }
        Measure::Load => vec![loads(field, sizes.window, sizes.most, until)],
        Measure::Take => vec![takes(field, sizes.takes, until)],
        Measure::Away => vec![absences(field, sizes.absences, until)],
        Measure::Duties => {
            vec![placement::measure(field, sizes.losses, sizes.most, until)]
        }
        Measure::Idle => vec![idle::measure(field, sizes.window, sizes.most, until)],
        Measure::Growth => vec![growth::measure(field, sizes.fleets, sizes.window, until)],
        Measure::Hints => vec![hinting::measure(field, sizes.samples, until)],
        Measure::Question => machine::question().into_iter().collect(),
    }
}

type Found<T> = Vec<(Contender, Vec<T>)>;

fn changes(field: &Field, change: Change, sizes: Sizes, until: Deadline) -> Found<Sample> {
    field.each(|_| true, |entrant| change::samples(field, entrant, change, sizes.samples, until))
}

fn next(found: &Found<Sample>) -> Found<Option<f64>> {
    let times = |samples: &Vec<Sample>| samples.iter().map(|sample| sample.next).collect();
    found.iter().map(|(who, samples)| (*who, times(samples))).collect()
}

fn paused(found: &Found<Sample>) -> Vec<Section> {
    let title = "SIGSTOP of the leader until another leads, ttl 10 s (median, and the worst)";
    let first = section::times("pause", title, &next(found));
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for (who, samples) in found {
        let beliefs: Vec<f64> = samples.iter().filter_map(|sample| sample.overlap).collect();
        let spread = Spread::new(beliefs);
        let two = spread.above(0.0);
        let mut cells: Vec<String> =
            [0.5, 0.99, 1.0].map(|share| shown(spread.quantile(share))).to_vec();
        cells.push(format!("{two} of {}", spread.len()));
        let text = match spread.len() {
            0 => "nobody else led".to_owned(),
            _ => format!("{} at most, {two} of {}", shown(spread.quantile(1.0)), spread.len()),
        };
        let (label, ours) = (who.label(), who.is_ours());
        let [value, most] = [0.5, 1.0].map(|share| finite(spread.quantile(share)));
        bars.push(Bar { label, value: value.filter(|it| *it > 0.0), most, text, ours });
        rows.push((*who, cells));
    }
    let head = ["median", "p99", "max", "two leaders in"];
    let title = "Two leaders: for how long the resumed one still believes (median, and the worst)";
    vec![first, section::cells("overlap", &head, &rows, Some((title, bars)))]
}

fn loads(field: &Field, window: Duration, most: usize, until: Deadline) -> Section {
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for leases in [1, 100, 1000, 10_000] {
        if leases > most {
            continue;
        }
        if until.left() < window {
            field.fails_all(&format!("no time was left for {leases} leases"));
            continue;
        }
        // A file has no server that could count.
        let able = |who: &Contender| who.store != Store::Sqlite && who.most >= leases;
        let found = field.each(able, |entrant| load::loads(field, entrant, leases, window));
        let requests = |at: usize| -> Vec<(Contender, f64)> {
            let of = |loads: &[Load; 2]| loads.get(at).map_or(0.0, |load| load.requests);
            found.iter().map(|(who, loads)| (*who, of(loads))).collect()
        };
        let [of_leaders, of_waiters] = [requests(0), requests(1)];
        for (who, [leader, waiter]) in &found {
            let mut cells = vec![leases.to_string()];
            for (load, all) in [(leader, &of_leaders), (waiter, &of_waiters)] {
                // What goes over a stream that stays open is no request that could be counted.
                let streamed = who.store == Store::Etcd && !who.is_ours();
                let ratio =
                    if streamed { "–".to_owned() } else { times_ours(all, who, load.requests) };
                let requests = format!("{:.2}", load.requests);
                cells.push(if streamed { "a stream".to_owned() } else { requests });
                cells.push(ratio);
                cells.push(load.written.map_or("–".to_owned(), |it| format!("{it:.0}")));
                cells.push(format!("{:.0}", load.bytes));
                cells.push(format!("{:.0}", load.connections));
            }
            rows.push((*who, cells));
            if leases == 1000 && who.store != Store::Etcd {
                let value = leader.requests + waiter.requests;
                bars.push(Bar {
                    label: who.label(),
                    value: Some(value.max(0.01)),
                    most: None,
                    text: format!("{value:.1} a second"),
                    ours: who.is_ours(),
                });
            }
        }
    }
    let head = [
        "leases",
        "leader: requests/s",
        "in ours",
        "WAL bytes/s",
        "bytes/s on the wire",
        "connections made",
        "waiter: requests/s",
        "in ours",
        "WAL bytes/s",
        "bytes/s on the wire",
        "connections made",
    ];
    let title = "Requests a second at the server: a leader and a waiter of 1,000 leases";
    section::cells("load", &head, &rows, Some((title, bars)))
}

fn takes(field: &Field, samples: usize, until: Deadline) -> Section {
    let able = |who: &Contender| who.most >= 1000;
    let mut found: Found<f64> = Vec::new();
    // By turns, so that whatever the machine does meets all.
    for sample in 0..samples {
        if until.is_over() && sample > 0 {
            field.fails_all(&format!("time was over after {sample} of {samples} samples"));
            break;
        }
        for (who, took) in field.each(able, |entrant| load::take(field, entrant, 1000)) {
            match found.iter_mut().find(|(it, _)| it.key == who.key) {
                Some((_, times)) => times.push(took),
                None => found.push((who, vec![took])),
            }
        }
    }
    let spreads: Vec<_> = found.into_iter().map(|(who, times)| (who, Spread::new(times))).collect();
    let medians: Vec<_> = spreads.iter().map(|(who, spread)| (*who, spread.median())).collect();
    let row = |(who, spread): &(Contender, Spread)| {
        let mut cells = [0.5, 0.99, 1.0].map(|share| shown(spread.quantile(share))).to_vec();
        cells.push(spread.len().to_string());
        cells.push(times_ours(&medians, who, spread.median()));
        (*who, cells)
    };
    let rows: Vec<_> = spreads.iter().map(row).collect();
    let bar = |(who, spread): &(Contender, Spread)| Bar {
        label: who.label(),
        value: finite(spread.median()),
        most: finite(spread.quantile(1.0)),
        text: shown(spread.median()),
        ours: who.is_ours(),
    };
    let bars = spreads.iter().map(bar).collect();
    let head = ["median", "p99", "max", "samples", "median, in ours"];
    let title = "Until one process has taken 1,000 leases (median, and the worst)";
    section::cells("take", &head, &rows, Some((title, bars)))
}

fn absences(field: &Field, samples: usize, until: Deadline) -> Section {
    let spans = [Duration::from_secs(4), Duration::from_secs(30)];
    // A file can't be away.
    let able = |who: &Contender| who.store != Store::Sqlite;
    let found = field.each(able, |entrant| {
        let mut all: [Vec<Absence>; 2] = Default::default();
        for (span, absences) in spans.iter().zip(&mut all) {
            for sample in 0..samples {
                // Each span is tried once at least.
                if sample > 0 && until.is_over() {
                    let few = format!("time was over after {sample} of {samples} absences");
                    field.fails(&entrant.contender, &few);
                    break;
                }
                absences.push(away::absence(field, entrant, *span)?);
            }
        }
        Ok(all)
    });
    let row = |(who, [short, long]): &(Contender, [Vec<Absence>; 2])| {
        let survived = short.iter().filter(|absence| absence.survived).count();
        let mut cells = vec![format!("{survived} of {}", short.len())];
        for absences in [short, long] {
            let again = Spread::new(absences.iter().filter_map(|it| it.again).collect());
            cells.push(shown(again.median()));
        }
        let believed = Spread::new(long.iter().map(|absence| absence.believed).collect());
        cells.push(shown(believed.quantile(1.0)));
        (*who, cells)
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    let head = [
        "4 s: leadership survived",
        "4 s: a leader says yes after the return",
        "30 s: a leader says yes after the return",
        "30 s: the leader believed without its store for, at most",
    ];
    section::cells("away", &head, &rows, None)
}
