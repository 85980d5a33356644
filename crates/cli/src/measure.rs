//! How quick a store is from here.

use std::sync::Arc;
use std::time::Duration;

use incumbent::store::{Exchange, Expect, Key, Lane, Outcome, Put, Stamp, StoreError, Write};
use incumbent::{OpenStore, clock};
use tokio::sync::Notify;

use crate::sweep;

/// How many beats are measured.
const BEATS: u64 = 200;

/// How many hints are measured.
const HINTS: u64 = 50;

/// How many records a batch has at most.
const BATCH: usize = 100;

/// No hint that comes later than this is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// From sending a beat to its answer.
    pub(super) round_trip: Spread,
    /// How many new records went out in one exchange, and how long that took.
    pub(super) batch: (usize, Duration),
    /// From the answer to a write until another handle is woken; nothing where the store doesn't
    /// push, or no hint came.
    pub(super) push: Option<Spread>,
}

/// The middle and the far end of what was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Half were quicker.
    pub(super) p50: Duration,
    /// All but one in a hundred were quicker.
    pub(super) p99: Duration,
}

/// Measures in a cluster of its own, and removes it again.
pub(super) async fn measure(store: &OpenStore, other: &OpenStore) -> Result<Measured, StoreError> {
    let cluster = format!("measure-{}-{}", std::process::id(), clock::now().as_nanos());
    let measured = measure_in(&cluster, store, other).await;
    sweep::sweep(store, &cluster).await?;
    measured
}

async fn measure_in(
    cluster: &str,
    store: &OpenStore,
    other: &OpenStore,
) -> Result<Measured, StoreError> {
    let mut trips = Vec::new();
    let mut beat = Record { cluster, key: "member/measured", hint: false, last: None };
    for _ in 0..BEATS {
        let sent = clock::now();
        beat.swap(store, Lane::Beat).await?;
        trips.push(clock::now().since(sent));
    }
    let round_trip = spread(trips).unwrap_or(Spread { p50: PATIENCE, p99: PATIENCE });
    let batch = batch(cluster, store).await?;
    Ok(Measured { round_trip, batch, push: push(cluster, store, other).await? })
}

/// One exchange with as many creations as the store takes, up to a hundred.
async fn batch(cluster: &str, store: &OpenStore) -> Result<(usize, Duration), StoreError> {
    let count = store.capabilities().max_operations.min(BATCH);
    let writes = (0..count).map(|number| {
        Write::Put(Put {
            key: Key::new(&format!("lease/batch-{number}")),
            expect: Expect::Absent,
            value: br#"{"format":1}"#.to_vec(),
            stamp: Stamp { writer: u64::from(std::process::id()) << 32, attempt: number as u64 },
            hint: false,
        })
    });
    let exchange = Exchange { writes: writes.collect(), reads: Vec::new() };
    let sent = clock::now();
    let reply = store.exchange(cluster, Lane::Change, exchange).await?;
    let took = clock::now().since(sent);
    if reply.writes.iter().all(|outcome| matches!(outcome, Outcome::Applied(_))) {
        return Ok((count, took));
    }
    Err(StoreError::rejected("the store refused creations that nobody contested"))
}

async fn push(
    cluster: &str,
    store: &OpenStore,
    other: &OpenStore,
) -> Result<Option<Spread>, StoreError> {
    let woken = Arc::new(Notify::new());
    let wake = Arc::clone(&woken);
    let guard = other.hints(cluster, Arc::new(move || wake.notify_one()));
    if guard.is_none() {
        return Ok(None);
    }
    let mut delays = Vec::new();
    let mut lease = Record { cluster, key: "lease/measured", hint: true, last: None };
    for _ in 0..HINTS {
        lease.swap(store, Lane::Change).await?;
        let answered = clock::now();
        if tokio::time::timeout(PATIENCE, woken.notified()).await.is_ok() {
            delays.push(clock::now().since(answered));
        }
    }
    Ok(spread(delays))
}

/// A record that is swapped again and again.
struct Record<'a> {
    cluster: &'a str,
    key: &'a str,
    hint: bool,
    last: Option<(u64, incumbent::store::Version)>,
}

impl Record<'_> {
    async fn swap(&mut self, store: &OpenStore, lane: Lane) -> Result<(), StoreError> {
        let attempt = self.last.as_ref().map_or(1, |(attempt, _)| attempt + 1);
        let expect = self.last.take().map_or(Expect::Absent, |(_, it)| Expect::Version(it));
        let put = Put {
            key: Key::new(self.key),
            expect,
            value: format!("{{\"format\":1,\"beat\":{attempt}}}").into_bytes(),
            stamp: Stamp { writer: u64::from(std::process::id()), attempt },
            hint: self.hint,
        };
        let exchange = Exchange { writes: vec![Write::Put(put)], reads: Vec::new() };
        let reply = store.exchange(self.cluster, lane, exchange).await?;
        match reply.writes.into_iter().next() {
            Some(Outcome::Applied(version)) => {
                self.last = Some((attempt, version));
                Ok(())
            }
            Some(Outcome::Refused | Outcome::Deleted) | None => {
                Err(StoreError::rejected("the store refused a swap that nobody contested"))
            }
        }
    }
}

fn spread(mut times: Vec<Duration>) -> Option<Spread> {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied();
    Some(Spread { p50: at(50)?, p99: at(99)? })
}
