//! The race on a server that speaks SQL, at every isolation level; and a leader that is cut off and
//! asserts its term without pause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use incumbent::{Node, OpenStore, clock};
use incumbent_core::store::{Expect, Outcome, Version, Write};
use tokio::runtime::{Builder, Handle, Runtime};

use super::{Leader, Taker, race, transactions};
use crate::store::numbered::{stamp, with_value};
use crate::{Mood, Proxy};

const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// How a transaction makes sure of its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// By the assertion.
    Assert,
    /// By a plain SELECT, and a look at what it finds.
    Plain,
    /// By the locking SELECT, and nobody looks whether a row came.
    Ignored,
}

/// One kind of server.
pub trait Site {
    /// What it is called.
    const NAME: &'static str;

    /// Who takes over there.
    type Hands: Hands;

    /// Empties the tables.
    fn hands(&self) -> Self::Hands;

    /// One connection that commits a row under a term, if its fence lets it.
    fn leader(&self, fence: Fence, level: &'static str) -> Leader;
}

/// What one who takes over does at one kind of server.
pub trait Hands {
    /// Writes a record.
    fn write(&mut self, write: Write) -> Outcome;

    /// Puts a value in place of a record's, as nobody's write.
    fn replace(&mut self, key: &str, value: &str);

    /// How many rows were committed in each term.
    fn committed(&mut self) -> BTreeMap<u64, u64>;
}

/// Each term has a member of its own. Most take-overs close the member before, as one that fell
/// silent; in between the lease goes from hand to hand.
struct Successor<H> {
    hands: H,
    version: Version,
    attempt: u64,
}

impl<H: Hands> Successor<H> {
    fn new(hands: H) -> Self {
        let mut this = Self { hands, version: Version::new(""), attempt: 0 };
        this.swap(&Expect::Absent, 1);
        this
    }

    fn put(&mut self, key: &str, expect: &Expect, value: &str) -> Outcome {
        self.attempt += 1;
        self.hands.write(with_value(key, expect.clone(), self.attempt, false, value))
    }

    fn swap(&mut self, expect: &Expect, term: u64) {
        let member = |term: u64, state: &str| {
            format!(
                "{{\"format\":1,\"id\":\"m{term}\",\"state\":\"{state}\",\"beat\":1,\
                 \"ttl_ms\":5000,\"due_ms\":1000}}"
            )
        };
        let joined = self.put(&format!("member/m{term}"), &Expect::Absent, &member(term, "alive"));
        assert!(matches!(joined, Outcome::Applied(_)), "{joined:?}");
        if term > 1 && term % 4 != 1 {
            self.hands.replace(&format!("member/m{}", term - 1), &member(term - 1, "expired"));
        }
        let lease = format!(
            "{{\"format\":1,\"name\":\"scheduler\",\"term\":{term},\
             \"holder\":{{\"member\":\"m{term}\",\"node\":\"n{term}\"}}}}"
        );
        while self.put("lease/scheduler", expect, &lease) == Outcome::Refused {}
        self.version = stamp(self.attempt).version();
    }
}

impl<H: Hands> Taker for Successor<H> {
    fn take(&mut self, term: u64) {
        self.swap(&Expect::Version(self.version.clone()), term);
    }

    fn committed(&mut self) -> BTreeMap<u64, u64> {
        self.hands.committed()
    }
}

/// A runtime for one connection.
///
/// # Panics
///
/// If there can't be one.
#[must_use]
pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// The assertion lets no stale commit through at any isolation level, and each of the weaker fences
/// does at some.
///
/// # Panics
///
/// If that isn't so.
pub fn only_the_assertion_fences<S: Site>(site: &S) {
    let each = transactions();
    let run = |fence: Fence, level: &'static str| {
        let mut successor = Successor::new(site.hands());
        let leaders = (0..6).map(|_| site.leader(fence, level)).collect();
        let tally = race(each, leaders, &mut successor);
        println!("{}, {level}, {fence:?}: {tally}", S::NAME);
        tally
    };
    let (mut plain, mut ignored) = (0, 0);
    for level in LEVELS {
        let tally = run(Fence::Assert, level);
        assert_eq!(tally.stale, 0, "{level}: {tally}");
        assert!(tally.committed > each / 20 && tally.refused > 0, "no race: {level}: {tally}");
        assert_eq!(tally.committed + tally.refused, each, "{level}: {tally}");
        plain += run(Fence::Plain, level).stale;
        ignored += run(Fence::Ignored, level).stale;
    }
    // The same race shows what the others let through, so it can show something.
    assert!(plain > 0 && ignored > 0, "{plain} with a plain SELECT, {ignored} without a look");
}

/// One connection of a leader that doesn't know that it is cut off.
pub trait Zombie: Send + 'static {
    /// Asserts the term in a transaction that goes on for so long if it is held, and is rolled back.
    /// Says whether it was.
    fn turn(&mut self, term: i64, span: Duration) -> impl Future<Output = bool> + Send;
}

/// A leader that is cut off from its store, whose application asserts its term without pause on 32
/// connections, keeps nobody out.
///
/// # Panics
///
/// If its successor doesn't lead in time.
pub async fn zombies_keep_nobody_out<Z: Zombie>(
    port: u16,
    open: impl AsyncFn(u16) -> OpenStore,
    connect: impl AsyncFn() -> Z,
) {
    const TTL: Duration = Duration::from_secs(3);
    const TRANSACTION: Duration = Duration::from_millis(50);
    let proxy = Proxy::to(port).await;
    let node =
        |name: &'static str| Node::builder().cluster("c").name(name).allow_short_ttl().ttl(TTL);
    let first = node("first").join(open(proxy.port()).await).await.expect("it joins");
    let mut campaign = first.campaign("scheduler").expect("a campaign");
    let held = campaign.elected().await.expect("it leads");
    let term = held.fence().as_i64();
    let second = node("second").join(open(port).await).await.expect("it joins");
    let mut campaign = second.campaign("scheduler").expect("a campaign");

    let (going, passed) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let mut zombies = Vec::new();
    for _ in 0..32 {
        let mut zombie = connect().await;
        let (going, passed) = (Arc::clone(&going), Arc::clone(&passed));
        zombies.push(Handle::current().spawn(async move {
            while going.load(Ordering::SeqCst) {
                let held = zombie.turn(term, TRANSACTION).await;
                passed.fetch_add(u64::from(held), Ordering::SeqCst);
            }
        }));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(passed.load(Ordering::SeqCst) > 32, "they hold the lock all the time");
    let since = clock::now();
    proxy.set(Mood::Silent);
    let won = tokio::time::timeout(Duration::from_secs(30), campaign.elected()).await;
    let taken = clock::now().since(since);
    going.store(false, Ordering::SeqCst);
    println!("taken over after {taken:?} (ttl {TTL:?}, transactions of {TRANSACTION:?})");
    assert!(won.is_ok(), "the successor is kept out");
    assert!(taken < TTL + Duration::from_secs(1) + TRANSACTION, "{taken:?}");
    for zombie in zombies {
        zombie.await.expect("no panic");
    }
    drop(held);
}
