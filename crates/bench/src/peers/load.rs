//! What a leader and a waiter cost the server while nothing happens, and how soon many leases are taken.

use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::clock;
use incumbent_proving::{Proxy, Traffic};

use super::contender::Store;
use super::field::{Deadline, Entrant, Field};
use super::player::{Player, Task, Word};
use super::servers::{ROLES, Statements};
use crate::partner::pause;

/// What one process costs, a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// On PostgreSQL as it counts statements, else how often the process spoke after the server had.
    pub(crate) requests: f64,
    /// Bytes of PostgreSQL's log of writes.
    pub(crate) written: Option<f64>,
    /// In both directions.
    pub(crate) bytes: f64,
    /// How many were open.
    pub(crate) connections: f64,
}

/// What it takes until all leases are taken.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was sent for the start is over by then.
const SETTLED: Duration = Duration::from_secs(5);

/// The load of a leader of so many leases, and of another process that waits for the same.
pub(crate) fn loads(
    field: &Field,
    entrant: &Entrant,
    leases: usize,
    window: Duration,
) -> Result<[Load; 2]> {
    let contender = &entrant.contender;
    let lease = field.name("lease");
    let mut paths = Vec::new();
    let mut players = Vec::new();
    for role in ROLES {
        let path = Proxy::blocking_before(&field.servers.url(contender, role)?);
        let task = Task {
            url: path.url(),
            lease: &lease,
            ttl: field.ttl,
            count: leases,
            ask: Duration::ZERO,
        };
        let player = field.begin(entrant, &task)?;
        if role == "leader" {
            all_led(&player, leases)?;
        }
        players.push(player);
        paths.push(path);
    }
    pause(SETTLED);
    let read = || -> Result<(Vec<Traffic>, [Statements; 2])> {
        let counted = match contender.store {
            Store::Postgres => field.servers.statements(contender)?,
            _ => Default::default(),
        };
        Ok((paths.iter().map(Proxy::traffic).collect(), counted))
    };
    let began = clock::now();
    let (traffic, counted) = read()?;
    pause(window);
    let (traffic_then, counted_then) = read()?;
    let seconds = clock::now().since(began).as_nanos() as f64 / 1e9;
    let mut loads = [Load::default(); 2];
    for (at, load) in loads.iter_mut().enumerate() {
        let (before, after) = (traffic.get(at), traffic_then.get(at));
        let passed = after.context("a path")?.since(*before.context("a path")?);
        let (before, after) = (counted.get(at), counted_then.get(at));
        let (before, after) = (before.context("a role")?, after.context("a role")?);
        *load = Load {
            requests: passed.requests as f64 / seconds,
            written: None,
            bytes: (passed.bytes_up + passed.bytes_down) as f64 / seconds,
            connections: after_all(traffic_then.get(at)),
        };
        if contender.store == Store::Postgres {
            load.requests = (after.calls - before.calls) / seconds;
            load.written = Some((after.written - before.written) / seconds);
        }
    }
    Ok(loads)
}

/// Milliseconds from its first attempt to the last of so many leases.
pub(crate) fn take(field: &Field, entrant: &Entrant, leases: usize) -> Result<f64> {
    let url = field.servers.url(&entrant.contender, "postgres")?;
    let lease = field.name("lease");
    let (ttl, ask) = (field.ttl, Duration::ZERO);
    let task = Task { url: &url, lease: &lease, ttl, count: leases, ask };
    let _quiet = field.quiet();
    let player = Player::start(&entrant.program, &field.name("process"), &task)?;
    let began = player.hear(Word::Begin, PATIENCE).context("it doesn't begin")?;
    let ended = all_led(&player, leases)?;
    Ok(ended.saturating_sub(began) as f64 / 1e6)
}

/// When the last of them was led.
pub(super) fn all_led(player: &Player, leases: usize) -> Result<u64> {
    let deadline = Deadline::after(PATIENCE);
    let mut last = 0;
    for led in 0..leases {
        let at = player.hear(Word::Led, deadline.left());
        last = last.max(at.with_context(|| {
            format!("only {led} of {leases} leases were taken within {} s", PATIENCE.as_secs())
        })?);
    }
    Ok(last)
}

/// Connections that were made; none of them is made anew while nothing happens.
fn after_all(traffic: Option<&Traffic>) -> f64 {
    traffic.map_or(0.0, |traffic| traffic.connections as f64)
}
