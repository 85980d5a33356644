//! What has happened in a run, and whether it may.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use incumbent::store::{Exchange, Lane, Outcome, Reply, Version, Write};
use incumbent::testing::{Holding, Judge, Process, Thread, World};
use incumbent_core::records::{LeaseRecord, MemberRecord, MemberState};
use incumbent_core::{LeaseName, MemberId, Moment};

use crate::invariants::{
    broken, ends, events, foreign, one_leader, steps, terms, trust_bound, work_first,
};

/// Something that must not be.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The invariant that was violated.
    pub invariant: &'static str,
    /// When, in the time of the world.
    pub at: Duration,
    /// What happened.
    pub story: String,
}

/// Work that has begun and not ended, as the application sees it.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) process: usize,
    pub(crate) lease: LeaseName,
    pub(crate) term: u64,
    pub(crate) member: MemberId,
    /// How long it has been there although it should have ended.
    pub(crate) overdue: Duration,
    /// How long it may take to end in order.
    pub(crate) grace: Duration,
    /// It blocks its thread on purpose.
    pub(crate) blocks: bool,
    /// When it last took a step.
    pub(crate) stepped: Duration,
}

/// What the store was told about a lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) term: u64,
    pub(crate) holder: Option<MemberId>,
}

/// What the checks know.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) now: Duration,
    pub(crate) running: BTreeMap<u64, Running>,
    next: u64,
    /// Which process was elected for which term.
    pub(crate) elected: BTreeMap<(LeaseName, u64), usize>,
    pub(crate) leases: BTreeMap<String, Known>,
    /// When a beat was sent, by the clock of its process.
    pub(crate) beats: BTreeMap<Version, (MemberId, Moment)>,
    /// Until when a member may trust, by its own clock: by beats that were applied.
    pub(crate) bounds: BTreeMap<MemberId, Moment>,
    /// What a subscriber of a process believes that its node leads.
    pub(crate) told: BTreeMap<(usize, LeaseName), u64>,
    /// Processes whose drivers are to panic.
    pub(crate) breaking: BTreeSet<usize>,
    /// Processes whose nodes have left.
    pub(crate) left: BTreeSet<usize>,
    violation: Option<Violation>,
    lines: VecDeque<String>,
    digest: DefaultHasher,
    /// Counts, to see that enough happened.
    pub(crate) counts: Counts,
}

/// How much happened in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Terms that began.
    pub elections: u64,
    /// Steps that work took.
    pub steps: u64,
    /// Faults, of whatever kind.
    pub faults: u64,
    /// Work that was cut off, panicked or failed.
    pub failures: u64,
    /// Milliseconds of virtual time.
    pub millis: u64,
}

/// The book of one run. Clones are the same book.
#[derive(Clone)]
pub struct Book {
    world: World,
    ttl: Duration,
    margin: Duration,
    tells: bool,
    pages: Arc<Mutex<Pages>>,
}

impl Pages {
    /// Only the first counts: what follows may be its consequence.
    pub(crate) fn violate(&mut self, invariant: &'static str, story: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { invariant, at: self.now, story });
        }
    }
}

impl Book {
    pub(crate) fn new(world: &World, ttl: Duration, margin: Duration, tells: bool) -> Self {
        let pages = Arc::default();
        Self { world: world.clone(), ttl, margin, tells, pages }
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        let now = self.world.elapsed();
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.now = now;
        pages
    }

    /// Writes a line of history.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if self.tells {
            let mut pages = self.pages();
            let seconds = pages.now.as_secs_f64();
            pages.lines.push_back(format!("{seconds:9.3} {}", line()));
            if pages.lines.len() > 4000 {
                pages.lines.pop_front();
            }
        }
    }

    /// Something happened that a second run of the same seed must repeat.
    pub(crate) fn sign(&self, what: impl Hash) {
        let mut pages = self.pages();
        let now = pages.now;
        (now, what).hash(&mut pages.digest);
    }

    /// What the run came to.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.pages().violation.clone()
    }

    pub(crate) fn digest(&self) -> u64 {
        self.pages().digest.finish()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.pages().lines.iter().cloned().collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        let pages = self.pages();
        Counts { millis: pages.now.as_millis() as u64, ..pages.counts }
    }

    /// Work begins under a term.
    pub(crate) fn began(&self, process: &Process, running: Running) -> u64 {
        let (lease, term) = (running.lease.clone(), running.term);
        self.note(|| format!("{} works under {lease} {term}", process.name()));
        self.sign(("began", process.id(), &lease, term));
        let mut pages = self.pages();
        foreign::check(&mut pages, "work");
        work_first::began(&mut pages, &running);
        let id = pages.next;
        pages.next += 1;
        pages.running.insert(id, running);
        id
    }

    /// Nothing of that work is left.
    pub(crate) fn ended(&self, id: u64) {
        let ended = self.pages().running.remove(&id);
        if let Some(Running { process, lease, term, .. }) = ended {
            self.note(|| format!("process {process} has ended its work under {lease} {term}"));
            self.sign(("ended", process, &lease, term));
        }
    }

    /// Work takes a step.
    pub(crate) fn step(&self, id: u64, process: &Process) {
        let holdings = self.world.holdings();
        let mut pages = self.pages();
        pages.counts.steps += 1;
        foreign::check(&mut pages, "a step of work");
        steps::check(&mut pages, id, process, &holdings);
    }

    /// It blocks its thread from now on, or does so no more.
    pub(crate) fn blocks(&self, id: u64, blocks: bool) {
        if let Some(running) = self.pages().running.get_mut(&id) {
            running.blocks = blocks;
        }
    }

    /// A subscriber was told something.
    pub(crate) fn heard(&self, process: &Process, event: &incumbent::Event) {
        self.note(|| format!("{} hears {event:?}", process.name()));
        events::check(&mut self.pages(), process.id(), event);
    }

    /// Looked at every now and then: what should have ended by now.
    pub(crate) fn sweep(&self, every: Duration, processes: &[Process]) {
        let holdings = self.world.holdings();
        ends::check(&mut self.pages(), every, processes, &holdings);
    }

    /// A process was killed: nothing of it runs.
    pub(crate) fn killed(&self, process: usize) {
        let mut pages = self.pages();
        pages.running.retain(|_, running| running.process != process);
        pages.told.retain(|(of, _), _| *of != process);
    }

    fn look(&self, holdings: &[Holding]) {
        let mut pages = self.pages();
        one_leader::check(&mut pages, holdings);
        trust_bound::check(&mut pages, holdings);
        for holding in holdings {
            let key = (holding.lease.clone(), holding.term);
            if !pages.elected.contains_key(&key) {
                pages.counts.elections += 1;
                terms::elected(&mut pages, holding);
                pages.elected.insert(key, holding.process);
            }
        }
    }
}

impl Judge for Book {
    fn polled(&self, process: &Process, thread: Thread) {
        // Trust begins, and is put off, nowhere else.
        if thread == Thread::Beats {
            let holdings = self.world.holdings();
            if !holdings.is_empty() {
                self.look(&holdings);
            }
            let mut pages = self.pages();
            if pages.breaking.contains(&process.id()) && !process.is_to_break() {
                pages.breaking.remove(&process.id());
                broken::check(&mut pages, process, &holdings);
            }
        }
    }

    fn sent(&self, process: &Process, _: Lane, exchange: &Exchange) {
        for write in &exchange.writes {
            let Write::Put(put) = write else { continue };
            if let Some(lease) = lease_record(put.key.as_str(), &put.value) {
                self.note(|| {
                    let (name, term, holder) = (&lease.name, lease.term, &lease.holder);
                    let holder = holder.as_ref().map(|holder| holder.node.as_str());
                    format!("{} sends {name} term {term} holder {holder:?}", process.name())
                });
                work_first::lease_sent(&mut self.pages(), process.id(), &lease);
            }
            if let Some(member) = member_record(put.key.as_str(), &put.value) {
                let mut pages = self.pages();
                if member.state == MemberState::Alive {
                    let sent = (member.id.clone(), process.now());
                    pages.beats.insert(put.stamp.version(), sent);
                } else {
                    work_first::member_sent(&mut pages, process.id(), &member);
                }
            }
        }
    }

    fn applied(&self, _: &Process, _: Lane, exchange: &Exchange, reply: &Reply) {
        for (write, outcome) in exchange.writes.iter().zip(&reply.writes) {
            let (Write::Put(put), Outcome::Applied(version)) = (write, outcome) else { continue };
            let mut pages = self.pages();
            if let Some((member, sent)) = pages.beats.get(version).cloned() {
                let bound = pages.bounds.entry(member).or_insert(Moment::START);
                *bound = (*bound).max(sent + (self.ttl - self.margin));
            }
            if let Some(lease) = lease_record(put.key.as_str(), &put.value) {
                terms::applied(&mut pages, &lease);
            }
        }
    }
}

fn lease_record(key: &str, value: &[u8]) -> Option<LeaseRecord> {
    key.starts_with("lease/").then(|| serde_json::from_slice(value).ok()).flatten()
}

fn member_record(key: &str, value: &[u8]) -> Option<MemberRecord> {
    key.starts_with("member/").then(|| serde_json::from_slice(value).ok()).flatten()
}
