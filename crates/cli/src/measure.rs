//! How quick a store is from here.

use std::sync::Arc;
use std::time::Duration;

use incumbent::store::{
    Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Reply, Stamp, Store, StoreError,
    Version, Write,
};
use incumbent::{Moment, clock};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// However slow a store is, this many of each kind are measured.
const LEAST: usize = 10;

/// How many records a batch has at most.
const BATCH: usize = 100;

/// No hint that comes later than this is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(5);

/// After so many in a row that didn't come, no more hints are waited for.
const MISSED: usize = 3;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// So many of each kind at most.
    pub(crate) most: usize,
    /// For no longer than this, once there are a few.
    pub(crate) within: Duration,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// A read of one record.
    pub(crate) read: Spread,
    /// A compare-and-swap of one record.
    pub(crate) swap: Spread,
    /// A beat: a swap, and a read of the board.
    pub(crate) beat: Spread,
    /// From sending a change until its answer is here and another handle is woken; nothing where
    /// the store doesn't push, or no hint came.
    pub(crate) push: Option<Spread>,
    /// What passed on the store's clock and on this machine's, where the store has one.
    pub(crate) clocks: Option<Clocks>,
}

/// The middle and the far end of what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Half took no longer.
    pub(crate) p50: Duration,
    /// All but one in a hundred took no longer.
    pub(crate) p99: Duration,
    /// How many were measured.
    pub(crate) samples: usize,
}

/// How long ago a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// By the store's clock.
    pub(crate) there: Duration,
    /// By this machine's: no less than this,
    pub(crate) least: Duration,
    /// and no more than this.
    pub(crate) most: Duration,
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort();
        let at = |share: usize| {
            let rank = (times.len() * share).div_ceil(100);
            times.get(rank.saturating_sub(1)).copied()
        };
        Some(Self { p50: at(50)?, p99: at(99)?, samples: times.len() })
    }

    /// As JSON.
    pub(crate) fn json(self) -> Value {
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        json!({ "p50_ms": millis(self.p50), "p99_ms": millis(self.p99), "samples": self.samples })
    }
}

impl Clocks {
    /// By how much the clocks disagree, beyond what the way to the store explains.
    pub(crate) fn apart(self) -> Duration {
        let early = self.least.saturating_sub(self.there);
        early.max(self.there.saturating_sub(self.most))
    }
}

/// Measures in a cluster that is there for nothing else. Whoever calls this removes it again.
pub(crate) async fn measure(
    store: &dyn Store,
    other: &dyn Store,
    cluster: &str,
    effort: Effort,
) -> Result<Measured, StoreError> {
    let mut aging = Record { cluster, key: "lease/aging", hint: false, last: None };
    let written = aging.swap(store, Lane::Change, Vec::new()).await?;
    let mut record = Record { cluster, key: "lease/swapped", hint: false, last: None };
    let mut swaps = Vec::new();
    let mut turns = Turns::new(effort);
    while turns.next(swaps.len()) {
        swaps.push(record.swap(store, Lane::Change, Vec::new()).await?.took());
    }
    let mut reads = Vec::new();
    let mut turns = Turns::new(effort);
    while turns.next(reads.len()) {
        reads.push(read(store, cluster, "lease/swapped").await?.1.took());
    }
    let mut member = Record { cluster, key: "member/measured", hint: false, last: None };
    let mut beats = Vec::new();
    let mut turns = Turns::new(effort);
    while turns.next(beats.len()) {
        let board = Read::Key { key: incumbent::keys::board(), unless: None };
        beats.push(member.swap(store, Lane::Beat, vec![board]).await?.took());
    }
    let push = push(cluster, store, other, effort).await?;
    let (reply, asked) = read(store, cluster, "lease/aging").await?;
    let nothing = Spread { p50: Duration::ZERO, p99: Duration::ZERO, samples: 0 };
    let spread = |times| Spread::of(times).unwrap_or(nothing);
    Ok(Measured {
        read: spread(reads),
        swap: spread(swaps),
        beat: spread(beats),
        push,
        clocks: age(&reply).map(|there| Clocks {
            there,
            least: asked.sent.since(written.answered),
            most: asked.answered.since(written.sent),
        }),
    })
}

/// One exchange with as many creations as the store takes, up to a hundred: how many those are,
/// and how long it took.
pub(crate) async fn batch(
    store: &dyn Store,
    cluster: &str,
) -> Result<(usize, Duration), StoreError> {
    let count = store.capabilities().max_operations.min(BATCH);
    let writes = (0..count).map(|number| {
        Write::Put(Put {
            key: Key::new(&format!("lease/batch-{number}")),
            expect: Expect::Absent,
            value: br#"{"format":1}"#.to_vec(),
            stamp: Stamp { writer: u64::from(std::process::id()) << 32, attempt: number as u64 },
            hint: false,
            durable: true,
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
    store: &dyn Store,
    other: &dyn Store,
    effort: Effort,
) -> Result<Option<Spread>, StoreError> {
    let woken = Arc::new(Notify::new());
    let wake = Arc::clone(&woken);
    let guard = other.hints(cluster, Arc::new(move || wake.notify_one()));
    if guard.is_none() {
        return Ok(None);
    }
    let mut delays = Vec::new();
    let mut missed = 0;
    let mut lease = Record { cluster, key: "lease/hinted", hint: true, last: None };
    let mut turns = Turns::new(effort);
    while missed < MISSED && turns.next(delays.len()) {
        // One that is left over tells nothing about the next.
        let _ = tokio::time::timeout(Duration::ZERO, woken.notified()).await;
        let sent = lease.swap(store, Lane::Change, Vec::new()).await?.sent;
        if tokio::time::timeout(PATIENCE, woken.notified()).await.is_ok() {
            delays.push(clock::now().since(sent));
            missed = 0;
        } else {
            missed += 1;
        }
    }
    Ok(Spread::of(delays))
}

/// Whether another one is measured.
struct Turns {
    effort: Effort,
    began: Moment,
}

impl Turns {
    fn new(effort: Effort) -> Self {
        Self { effort, began: clock::now() }
    }

    fn next(&mut self, done: usize) -> bool {
        let Effort { most, within } = self.effort;
        done < LEAST || (done < most && clock::now().since(self.began) < within)
    }
}

/// When something was sent, and when its answer came.
#[derive(Clone, Copy, Debug)]
struct Trip {
    sent: Moment,
    answered: Moment,
}

impl Trip {
    fn took(self) -> Duration {
        self.answered.since(self.sent)
    }
}

async fn read(store: &dyn Store, cluster: &str, key: &str) -> Result<(Reply, Trip), StoreError> {
    let reads = vec![Read::Key { key: Key::new(key), unless: None }];
    let exchange = Exchange { writes: Vec::new(), reads };
    let sent = clock::now();
    let reply = store.exchange(cluster, Lane::Watch, exchange).await?;
    Ok((reply, Trip { sent, answered: clock::now() }))
}

fn age(reply: &Reply) -> Option<Duration> {
    match reply.reads.first()? {
        Found::Record(record) => record.age,
        Found::Absent | Found::Unchanged | Found::Records(_) => None,
    }
}

/// A record that is swapped again and again.
struct Record<'a> {
    cluster: &'a str,
    key: &'a str,
    hint: bool,
    last: Option<(u64, Version)>,
}

impl Record<'_> {
    async fn swap(
        &mut self,
        store: &dyn Store,
        lane: Lane,
        reads: Vec<Read>,
    ) -> Result<Trip, StoreError> {
        let attempt = self.last.as_ref().map_or(1, |(attempt, _)| attempt + 1);
        let expect = self.last.take().map_or(Expect::Absent, |(_, it)| Expect::Version(it));
        let put = Put {
            key: Key::new(self.key),
            expect,
            value: format!("{{\"format\":1,\"beat\":{attempt}}}").into_bytes(),
            stamp: Stamp { writer: u64::from(std::process::id()), attempt },
            hint: self.hint,
            durable: true,
        };
        let exchange = Exchange { writes: vec![Write::Put(put)], reads };
        let sent = clock::now();
        let reply = store.exchange(self.cluster, lane, exchange).await?;
        let trip = Trip { sent, answered: clock::now() };
        match reply.writes.into_iter().next() {
            Some(Outcome::Applied(version)) => {
                self.last = Some((attempt, version));
                Ok(trip)
            }
            Some(Outcome::Refused | Outcome::Deleted) | None => {
                Err(StoreError::rejected("the store refused a swap that nobody contested"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_have_their_slowest_as_p99() {
        let times = (1..=10).map(Duration::from_millis).collect();
        let spread = Spread::of(times).unwrap();
        assert_eq!((spread.p50, spread.p99), (Duration::from_millis(5), Duration::from_millis(10)));
        let times = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(Spread::of(times).unwrap().p99, Duration::from_millis(99));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn clocks_are_apart_by_what_the_way_does_not_explain() {
        let ms = Duration::from_millis;
        let clocks = |there| Clocks { there: ms(there), least: ms(100), most: ms(110) };
        assert_eq!(clocks(105).apart(), Duration::ZERO);
        assert_eq!(clocks(90).apart(), ms(10));
        assert_eq!(clocks(130).apart(), ms(20));
    }
}
