//! What a measure found, as a table and a chart.

use std::fmt::Write as _;

use super::change::LONGEST;
use super::chart::{self, Bar};
use super::contender::{Contender, Held};
use crate::spread::Spread;

/// One measure.
pub(crate) struct Section {
    /// Its name in options, in the page and of its chart.
    pub(crate) key: &'static str,
    /// A table in Markdown.
    pub(crate) table: String,
    /// A chart as SVG, if one says more than the table.
    pub(crate) chart: Option<String>,
}

impl Section {
    /// With what couldn't be measured below the table.
    pub(super) fn noting(mut self, failures: &[String]) -> Self {
        if !failures.is_empty() {
            let table = self.table.trim_end();
            self.table = format!("{table}\n\nNot measured: {}.\n", failures.join("; "));
        }
        self
    }
}

/// Times in milliseconds; one that is missing took longer than anybody waits.
pub(crate) fn times(
    key: &'static str,
    title: &str,
    found: &[(Contender, Vec<Option<f64>>)],
) -> Section {
    let mut table =
        "| | held by | its default ttl | median | p99 | max | without a next leader | samples \
                     | median, in ours |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    let mut bars = Vec::new();
    let spreads: Vec<_> = found.iter().map(|(who, times)| (*who, spread(times))).collect();
    for ((who, times), (_, spread)) in found.iter().zip(&spreads) {
        let missing = times.iter().filter(|time| time.is_none()).count();
        let held = match who.held {
            Held::Lease => "a lease",
            Held::Connection => "a connection",
        };
        let [median, p99, most] = [0.5, 0.99, 1.0].map(|share| shown(spread.quantile(share)));
        let _ = writeln!(
            table,
            "| {} | {held} | {} | {median} | {p99} | {most} | {missing} | {} | {} |",
            name(who),
            who.default_ttl,
            times.len(),
            ratio(&spreads, who, spread.median())
        );
        let none = format!("none within {} s", LONGEST.as_secs());
        bars.push(Bar {
            label: who.label(),
            value: finite(spread.median()),
            most: finite(spread.quantile(1.0)),
            text: if spread.len() == 0 { none } else { median },
            ours: who.is_ours(),
        });
    }
    Section { key, table, chart: Some(chart::svg(title, &bars)) }
}

/// A table of ready cells, in the order of the head.
pub(crate) fn cells(
    key: &'static str,
    head: &[&str],
    rows: &[(Contender, Vec<String>)],
    chart: Option<(&str, Vec<Bar>)>,
) -> Section {
    let mut table = format!("| | {} |\n| --- |{}\n", head.join(" | "), " --- |".repeat(head.len()));
    for (who, cells) in rows {
        let _ = writeln!(table, "| {} | {} |", name(who), cells.join(" | "));
    }
    let chart = chart.map(|(title, bars)| chart::svg(title, &bars));
    Section { key, table, chart }
}

/// How much of ours on the same store something is.
pub(crate) fn times_ours(all: &[(Contender, f64)], who: &Contender, value: f64) -> String {
    let ours = all.iter().find(|(it, _)| it.is_ours() && it.store == who.store);
    match ours {
        _ if who.is_ours() => "1".to_owned(),
        Some((_, ours)) if *ours > 0.0 && value.is_finite() => {
            let ratio = value / ours;
            if ratio >= 100.0 { format!("{ratio:.0} ×") } else { format!("{ratio:.2} ×") }
        }
        _ if !who.store.has_ours() => "no store of ours".to_owned(),
        _ => "–".to_owned(),
    }
}

/// Milliseconds as people read them.
pub(crate) fn shown(millis: f64) -> String {
    if !millis.is_finite() {
        "–".to_owned()
    } else if millis >= 1000.0 {
        format!("{:.2} s", millis / 1000.0)
    } else if millis >= 100.0 {
        format!("{millis:.0} ms")
    } else {
        format!("{millis:.1} ms")
    }
}

fn ratio(spreads: &[(Contender, Spread)], who: &Contender, median: f64) -> String {
    let medians: Vec<_> = spreads.iter().map(|(who, spread)| (*who, spread.median())).collect();
    times_ours(&medians, who, median)
}

fn spread(times: &[Option<f64>]) -> Spread {
    Spread::new(times.iter().copied().flatten().collect())
}

pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn name(who: &Contender) -> String {
    if who.is_ours() { format!("**{}**", who.label()) } else { who.label() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::contender::ALL;

    fn known(key: &str) -> Contender {
        *ALL.iter().find(|it| it.key == key).unwrap()
    }

    #[test]
    fn ratios_are_to_ours_on_the_same_store() {
        let found = [
            (known("ours-postgres"), vec![Some(2.0), Some(4.0), Some(6.0)]),
            (known("table"), vec![Some(8000.0), None]),
            (known("ours-redis"), vec![Some(1.0)]),
            (known("rslock"), vec![Some(10.0)]),
            (known("kazoo"), vec![Some(10.0)]),
            (known("advisory"), vec![None]),
        ];
        let Section { table, chart, .. } = times("kill", "a title", &found);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert!(
            rows[0].starts_with("| **incumbent on PostgreSQL** |") && rows[0].ends_with("| 1 |")
        );
        assert!(rows[1].contains("| 8.00 s | 8.00 s | 8.00 s | 1 | 2 | 2000 × |"), "{}", rows[1]);
        assert!(rows[3].ends_with("| 10.00 × |"), "{}", rows[3]);
        assert!(rows[4].ends_with("| no store of ours |"), "{}", rows[4]);
        assert!(rows[5].contains("| – | – | – | 1 | 1 | – |"), "{}", rows[5]);
        assert!(chart.unwrap().contains("none within"));
    }

    #[test]
    fn what_is_missing_stands_below_the_table() {
        let section = || times("kill", "a title", &[(known("table"), vec![Some(1.0)])]);
        assert_eq!(section().noting(&[]).table, section().table);
        let noted = section().noting(&["a: too late".to_owned(), "b: gone".to_owned()]).table;
        assert!(noted.ends_with("|\n\nNot measured: a: too late; b: gone.\n"), "{noted}");
    }
}
