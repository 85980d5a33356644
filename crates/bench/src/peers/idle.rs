//! What an idle process has of the machine it runs on: memory, and time of a processor.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::clock;

use super::chart::Bar;
use super::contender::{Contender, Store};
use super::field::{Deadline, Entrant, Field};
use super::load::all_led;
use super::player::Task;
use super::section::{self, Section};
use crate::duties::{Fleet, Manner};
use crate::partner::pause;

/// Of a process with all that it has started: its witness's helper, for example.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Kilobytes; what is shared with other processes counts in part.
    pss: f64,
    rss: f64,
    /// Milliseconds a second.
    cpu: f64,
}

/// What was sent for the start is over by then.
const SETTLED: Duration = Duration::from_secs(6);

pub(super) fn measure(field: &Field, window: Duration, most: usize, until: Deadline) -> Section {
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for leases in [1, 1000, 10_000] {
        if leases > most {
            continue;
        }
        if until.left() < window + SETTLED {
            field.fails_all(&format!("no time was left for {leases} leases"));
            break;
        }
        // More than 1,000 are for those whose costs don't grow with them.
        let able = |who: &Contender| who.most >= leases && (leases <= 1000 || who.is_ours());
        let found = field.each(able, |entrant| hold(field, entrant, leases, window));
        for (who, usage) in found {
            rows.push((who, cells(&format!("{leases} lease{}", s(leases)), usage)));
            if leases == if who.most >= 1000 { 1000 } else { 1 } {
                bars.push(bar(&who, leases, usage));
            }
        }
    }
    let ours = |it: &&Entrant| it.contender.is_ours() && it.contender.store == Store::Postgres;
    for duties in [1000, 10_000] {
        let Some(ours) = field.entrants.iter().find(ours).filter(|_| duties <= most) else {
            continue;
        };
        let who = ours.contender;
        if until.left() < window + SETTLED {
            field.fails(&who, &format!("no time was left for {duties} duties"));
            continue;
        }
        match run(field, &who, duties, window) {
            Ok(usage) => rows.push((who, cells(&format!("{duties} duties"), usage))),
            Err(error) => field.fails(&who, &format!("{duties} duties: {error:#}")),
        }
    }
    let head = ["holds", "memory (PSS)", "memory (RSS)", "CPU, ms a second"];
    let title =
        "Memory of a process that holds 1,000 leases, or one where it can't hold more (PSS)";
    section::cells("idle", &head, &rows, Some((title, bars)))
}

fn s(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn cells(what: &str, usage: Usage) -> Vec<String> {
    let Usage { pss, rss, cpu } = usage;
    let megabytes = |kilobytes: f64| format!("{:.1} MB", kilobytes * 1.024 / 1000.0);
    vec![what.to_owned(), megabytes(pss), megabytes(rss), format!("{cpu:.2}")]
}

fn bar(who: &Contender, leases: usize, usage: Usage) -> Bar {
    let megabytes = usage.pss * 1.024 / 1000.0;
    let one = if leases == 1 { ", one lease" } else { "" };
    Bar {
        label: who.label(),
        value: Some(megabytes),
        most: None,
        text: format!("{megabytes:.1} MB{one}"),
        ours: who.is_ours(),
    }
}

fn hold(field: &Field, entrant: &Entrant, leases: usize, window: Duration) -> Result<Usage> {
    let url = field.servers.url(&entrant.contender, "postgres")?;
    let lease = field.name("lease");
    let (ttl, ask) = (field.ttl, Duration::ZERO);
    let task = Task { url: &url, lease: &lease, ttl, count: leases, ask };
    let player = field.begin(entrant, &task)?;
    all_led(&player, leases)?;
    watched(player.id(), window)
}

/// A node that runs all duties.
fn run(field: &Field, who: &Contender, duties: usize, window: Duration) -> Result<Usage> {
    let url = field.servers.url(who, "postgres")?;
    let mut fleet = Fleet::start(&url, duties, 1, Manner { ttl: field.ttl, witness: true })?;
    fleet.await_all(duties)?;
    let process = fleet.processes().first().copied().context("there is no process")?;
    watched(process, window)
}

fn watched(process: u32, window: Duration) -> Result<Usage> {
    pause(SETTLED);
    let (began, before) = (clock::now(), ticks(process)?);
    pause(window);
    let after = ticks(process)?;
    let seconds = clock::now().since(began).as_secs_f64();
    let ticks = (after - before) / rustix::param::clock_ticks_per_second() as f64;
    let mut usage = Usage { cpu: 1000.0 * ticks / seconds, ..Usage::default() };
    for process in family(process) {
        let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
        usage.pss += kilobytes(&text, "Pss:").context("no Pss")?;
        usage.rss += kilobytes(&text, "Rss:").context("no Rss")?;
    }
    Ok(usage)
}

/// Ticks of a process and of all that it has started.
fn ticks(process: u32) -> Result<f64> {
    stat(process).context("it has ended")?;
    Ok(family(process).into_iter().map(ticks_of).sum())
}

/// Ticks of one process, and of children of it that have ended. One that has just ended itself counts with its
/// parent.
pub(super) fn ticks_of(process: u32) -> f64 {
    stat(process).map_or(0.0, |stat| stat.ticks)
}

/// A process and all that it has started, and so on.
fn family(process: u32) -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<(u32, u32)> =
        all.filter_map(|process| Some((process, stat(process).ok()?.parent))).collect();
    let mut family = BTreeSet::from([process]);
    loop {
        let children = all.iter().filter(|(_, parent)| family.contains(parent));
        let children: Vec<u32> = children.map(|(process, _)| *process).collect();
        let before = family.len();
        family.extend(children);
        if family.len() == before {
            return family;
        }
    }
}

struct Stat {
    parent: u32,
    /// Its own, and those of children that have ended.
    ticks: f64,
}

fn stat(process: u32) -> Result<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before this may hold anything.
    let (_, rest) = text.rsplit_once(')').context("a strange /proc")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |at: usize| fields.get(at).copied().context("a strange /proc");
    let mut ticks = 0.0;
    for at in 11..=14 {
        ticks += field(at)?.parse::<f64>()?;
    }
    Ok(Stat { parent: field(1)?.parse()?, ticks })
}

fn kilobytes(rollup: &str, name: &str) -> Option<f64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_its_name() {
        let rollup =
            "55-7f ---p 00000000 00:00 0   [rollup]\nRss:  1234 kB\nPss:   56 kB\nPss_Anon: 7 kB\n";
        assert_eq!(kilobytes(rollup, "Pss:"), Some(56.0));
        assert_eq!(kilobytes(rollup, "Rss:"), Some(1234.0));
        assert_eq!(kilobytes(rollup, "Swap:"), None);
    }

    #[test]
    fn a_family_is_a_process_and_what_it_started() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = family(std::process::id());
        assert!(own.contains(&child.id()) && own.contains(&std::process::id()));
        assert!(!own.contains(&std::os::unix::process::parent_id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(watched_now(std::process::id()) > 0.0);
    }

    fn watched_now(process: u32) -> f64 {
        let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
        kilobytes(&text, "Pss:").unwrap()
    }
}
