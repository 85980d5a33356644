//! The simulated world: virtual time, processes, the store and everything on its way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use incumbent_core::mutant::Planted;
use incumbent_core::random::Random;
use incumbent_core::store::{ErrorKind, Exchange, Write};
use incumbent_core::{LeaseName, Moment, Request, RequestId};
use incumbent_duties::DutyId;

use crate::duties::FAMILY;
use crate::happening::{Due, Happening};
use crate::history::{History, describe};
use crate::invariants::{Checks, Landing, Step, Violation};
use crate::network::{self, Back, Fate, Weather};
use crate::plant::Plant;
use crate::process::Process;
use crate::scenario::{MILLI, Scenario, Target, draw_span};
use crate::statistics::Statistics;
use crate::store::ModelStore;

/// A run in which more happens has a tight loop in it, which is a mistake of its own.
const MOST_HAPPENINGS: u64 = 200_000;

/// One run.
pub struct World {
    pub(crate) scenario: Scenario,
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) store: ModelStore,
    pub(crate) processes: Vec<Process>,
    pub(crate) leases: Vec<LeaseName>,
    /// All leases that checkers look at: those of the nodes, then those of duties.
    pub(crate) watched: Vec<LeaseName>,
    pub(crate) storm_until: u64,
    pub(crate) outage_until: u64,
    /// Whether the store refuses connections at once while it is out, or just hangs.
    pub(crate) outage_refuses: bool,
    /// Until when reads may be stale, and as of when a replica that was cut off answers them.
    pub(crate) stale: (u64, Option<u64>),
    pub(crate) calm: bool,
    pub(crate) statistics: Statistics,
    pub(crate) history: History,
    pub(crate) operator_stamps: u64,
    plant: Plant,
    pub(crate) checks: Checks,
    queue: BinaryHeap<Reverse<Due>>,
    order: u64,
    happenings: u64,
    /// Who sent a write, and when by its own clock.
    senders: BTreeMap<(u64, u64), Sender>,
}

/// Who sent a write, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    /// Which process.
    pub(crate) node: usize,
    /// When, by its clock.
    pub(crate) sent: Moment,
}

impl World {
    /// The world of a scenario, with a mistake planted if one is named.
    #[must_use]
    pub fn new(scenario: Scenario, plant: Plant, trace: bool) -> Self {
        let leases: Vec<LeaseName> = (0..scenario.leases)
            .filter_map(|at| LeaseName::new(&format!("lease-{}", at + 1)).ok())
            .collect();
        let duties = scenario.duties.iter().filter_map(|duty| DutyId::new(FAMILY, &duty.name).ok());
        let watched = leases.iter().cloned().chain(duties.map(|duty| duty.lease())).collect();
        let confused = plant == Plant::WallClock;
        let processes =
            scenario.nodes.iter().map(|plan| Process::new(plan.clone(), confused)).collect();
        let flaw = match plant {
            Plant::Store(flaw) => Some(flaw),
            Plant::Nothing
            | Plant::Core(_)
            | Plant::ClockStops
            | Plant::WallClock
            | Plant::PausedIsDead => None,
        };
        let mut world = Self {
            now: 0,
            random: Random::new(scenario.seed),
            store: ModelStore::new(flaw),
            processes,
            leases,
            watched,
            storm_until: 0,
            outage_until: 0,
            outage_refuses: false,
            stale: (0, None),
            calm: false,
            statistics: Statistics::default(),
            history: History::new(trace),
            operator_stamps: 0,
            checks: Checks::new(&scenario, (plant != Plant::Nothing).then(|| plant.caught_by())),
            queue: BinaryHeap::new(),
            order: 0,
            happenings: 0,
            senders: BTreeMap::new(),
            plant,
            scenario,
        };
        world.store.forgets_the_new = world.scenario.forgets_the_new;
        world.begin();
        world
    }

    fn begin(&mut self) {
        for node in 0..self.processes.len() {
            let at = self.random.below(2_000 * MILLI);
            self.schedule(at, Happening::Start { node });
        }
        for (at, fault) in self.scenario.faults.clone() {
            self.schedule(at, Happening::Fault(fault));
        }
        self.schedule(self.scenario.calm_from, Happening::Calm);
    }

    /// Runs to the end, or to the first violation.
    ///
    /// # Errors
    /// Says which invariant was violated, and how.
    pub fn run(&mut self) -> Result<(), Violation> {
        while let Some(Reverse(due)) = self.queue.pop() {
            if due.at > self.scenario.end {
                break;
            }
            self.now = due.at;
            self.happen(*due.what)?;
            self.happenings += 1;
            if self.happenings > MOST_HAPPENINGS {
                let story = format!("more than {MOST_HAPPENINGS} things happened: a tight loop");
                return Err(Violation { invariant: "runaway", instant: self.now, story });
            }
        }
        self.now = self.scenario.end;
        self.checks.each(self.now, |check| check.finish(&self.statistics))?;
        self.statistics.simulated_ms += self.now / MILLI;
        self.statistics.leaderless_ms = self.checks.longest_leaderless() / MILLI;
        Ok(())
    }

    /// What the run counted.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What happened, if it was traced.
    #[must_use]
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn schedule(&mut self, at: u64, what: Happening) {
        self.order += 1;
        self.queue.push(Reverse(Due {
            at: at.max(self.now),
            order: self.order,
            what: Box::new(what),
        }));
    }

    fn happen(&mut self, what: Happening) -> Result<(), Violation> {
        let Some(what) = self.unless_paused(what) else { return Ok(()) };
        match what {
            Happening::Wake { node, at } => {
                if self.processes.get(node).is_some_and(|process| process.wake == at) {
                    self.step(node, |_, _| {})?;
                }
            }
            Happening::Arrive { node, life, id, exchange, fate, sent } => {
                self.arrive(node, life, id, &exchange, fate, sent)?;
            }
            Happening::Reply { node, life, id, answer } => {
                let deaf = self
                    .processes
                    .get(node)
                    .is_none_or(|process| process.life != life || process.deaf_until > self.now);
                if !deaf {
                    self.step(node, |core, now| core.handle(now, id, answer))?;
                }
            }
            Happening::Hint { node } => self.step(node, |core, now| core.hint(now))?,
            Happening::Stopped { node, life, lease, term } => {
                if self.processes.get(node).is_some_and(|process| process.life == life) {
                    self.end_work(node, &lease, term)?;
                }
            }
            Happening::Prepared { node, life, duty } => {
                if self.processes.get(node).is_some_and(|process| process.life == life) {
                    self.prepared(node, &duty)?;
                }
            }
            Happening::Started { node, life, lease, term } => {
                let works = |process: &Process| {
                    process.life == life
                        && process.work.get(&lease).is_some_and(|work| work.term == term)
                };
                if self.processes.get(node).is_some_and(works) {
                    self.started(node, &lease, term)?;
                }
            }
            Happening::Planned { node, life, id, result } => {
                if self.processes.get(node).is_some_and(|process| process.life == life) {
                    self.step(node, |core, now| {
                        core.planned(now, id, result.map(|planned| *planned))
                    })?;
                }
            }
            Happening::Start { node } => self.start(node)?,
            Happening::Dead { node, member } => {
                self.step(node, |core, now| core.proven_dead(now, &member))?;
            }
            Happening::Want { node, lease } => self.want(node, lease)?,
            Happening::Fault(fault) => self.strike(fault)?,
            Happening::Calm => self.calm_down()?,
        }
        Ok(())
    }

    /// What happens to a process that stands still happens when it goes on.
    fn unless_paused(&mut self, what: Happening) -> Option<Happening> {
        let node = match &what {
            Happening::Wake { node, .. }
            | Happening::Reply { node, .. }
            | Happening::Hint { node }
            | Happening::Stopped { node, .. }
            | Happening::Started { node, .. }
            | Happening::Prepared { node, .. }
            | Happening::Planned { node, .. }
            | Happening::Dead { node, .. }
            | Happening::Want { node, .. } => *node,
            Happening::Arrive { .. }
            | Happening::Start { .. }
            | Happening::Fault(_)
            | Happening::Calm => return Some(what),
        };
        let until = self.processes.get(node).map_or(0, |process| process.paused_until);
        if until > self.now {
            self.schedule(until, what);
            return None;
        }
        Some(what)
    }

    fn start(&mut self, node: usize) -> Result<(), Violation> {
        let seed = self.random.number();
        let planted = match self.plant {
            Plant::Core(mutant) => Planted::new(Some(mutant)),
            Plant::Nothing
            | Plant::Store(_)
            | Plant::ClockStops
            | Plant::WallClock
            | Plant::PausedIsDead => Planted::default(),
        };
        let (push, leases, now) = (self.scenario.push, self.leases.clone(), self.now);
        let Some(process) = self.processes.get_mut(node) else { return Ok(()) };
        if process.core.is_some() {
            return Ok(());
        }
        self.checks.tell(|check| check.started(node));
        process.start(now, seed, push, planted, &leases, &self.scenario.duties);
        self.history.note(now, || format!("{} starts", process.plan.name));
        self.step(node, |_, _| {})
    }

    /// Lets a core do something, then sends what it wants sent and does what it says.
    pub(crate) fn step(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut incumbent_duties::DutyNode, Moment),
    ) -> Result<(), Violation> {
        let instant = self.now;
        let Some(process) = self.processes.get_mut(node) else { return Ok(()) };
        let clock = process.clock.clone();
        let now = clock.at(instant);
        let Some(core) = &mut process.core else { return Ok(()) };
        core.tell_wall(clock.wall(instant));
        act(core, now);
        core.poll(now);
        let mut requests = Vec::new();
        while let Some(request) = core.next_request() {
            requests.push(request);
        }
        let plans: Vec<_> = std::iter::from_fn(|| core.next_planning()).collect();
        let mut events = Vec::new();
        while let Some(event) = core.next_event() {
            events.push(event);
        }
        let wake = clock.instant(core.wake_at()).max(instant + 1);
        if wake != process.wake {
            process.wake = wake;
            if wake < u64::MAX / 2 {
                self.schedule(wake, Happening::Wake { node, at: wake });
            }
        }
        for request in requests {
            self.checks.each(self.now, |check| check.sent(self.now, node))?;
            self.send(node, now, request);
        }
        for planning in plans {
            self.make_plan(node, planning);
        }
        for event in events {
            self.experience(node, event)?;
        }
        let step = Step { now: self.now, node, processes: &self.processes, leases: &self.watched };
        self.checks.each(step.now, |check| check.stepped(step))
    }

    fn send(&mut self, node: usize, now: Moment, request: Request) {
        for write in &request.exchange.writes {
            if let Write::Put(put) = write {
                let key = (put.stamp.writer, put.stamp.attempt);
                self.senders.insert(key, Sender { node, sent: now });
            }
        }
        let fate = self.fate(node);
        if let Some(fault) = fate.fault {
            self.statistics.fault(fault);
        }
        self.history.note(self.now, || {
            format!(
                "{} sends {}",
                self.processes.get(node).map_or("?", |p| &p.plan.name),
                describe(&request)
            )
        });
        self.ambush(node, !request.exchange.writes.is_empty());
        let Request { id, exchange, .. } = request;
        let life = self.processes.get(node).map_or(0, |process| process.life);
        let sent = self.now;
        // What is on its way when the faults stop has arrived by then, or never will.
        let calm = if self.calm { u64::MAX } else { self.scenario.calm_from };
        if let Some(after) = fate.arrives.filter(|after| sent + after < calm) {
            let arrive = Happening::Arrive { node, life, id, exchange, fate, sent };
            self.schedule(sent + after, arrive);
        } else if let Back::Error(after, kind) = fate.back {
            if kind == ErrorKind::Unknown {
                self.statistics.unknown_lost += 1;
            }
            self.schedule(sent + after, Happening::Reply { node, life, id, answer: Err(kind) });
        }
    }

    /// In aimed runs a process often stands still just after it sent something: the reply then
    /// comes when nothing is as it was (F6).
    fn ambush(&mut self, node: usize, writes: bool) {
        let odds = if writes { 15 } else { 3 };
        if !self.scenario.aimed || self.calm || self.random.below(1000) >= odds {
            return;
        }
        let ttl = self.processes.get(node).map_or(1, |p| p.plan.timing.ttl.as_nanos() as u64);
        let span = draw_span(&mut self.random, ttl, true);
        self.statistics.fault("pause after sending");
        self.history.note(self.now, || format!("--- ambush: node {} stands still", node + 1));
        self.pause(Target::Node(node), span);
    }

    fn fate(&mut self, node: usize) -> Fate {
        let isolated = self.processes.get(node).is_some_and(|p| p.isolated_until > self.now);
        if self.outage_until > self.now && self.outage_refuses {
            return network::refused(&mut self.random);
        }
        if isolated || self.outage_until > self.now {
            return network::lost(&mut self.random);
        }
        let ill = match (self.calm, self.storm_until > self.now) {
            (true, _) => 0,
            (false, true) => 400,
            (false, false) => self.scenario.drizzle,
        };
        let ttl = self.processes.get(node).map_or(1, |p| p.plan.timing.ttl.as_nanos() as u64);
        let weather =
            Weather { latency: self.scenario.latency, ill, ttl, aimed: self.scenario.aimed };
        weather.fate(&mut self.random)
    }

    /// The instant as of which a read that arrives now is answered.
    fn as_of(&mut self) -> u64 {
        let (until, replica) = self.stale;
        if until <= self.now || self.random.below(2) == 0 {
            return self.now;
        }
        let ttl = self.scenario.longest_ttl();
        replica.unwrap_or_else(|| self.now.saturating_sub(self.random.below(2 * ttl)))
    }

    fn arrive(
        &mut self,
        node: usize,
        life: u64,
        id: RequestId,
        exchange: &Exchange,
        fate: Fate,
        sent: u64,
    ) -> Result<(), Violation> {
        let as_of = self.as_of();
        let (reply, applied) = self.store.exchange_as_of(self.now, as_of, exchange);
        match fate.back {
            Back::Reply(after) => {
                let reply = Happening::Reply { node, life, id, answer: Ok(reply) };
                self.schedule(sent + after, reply);
            }
            Back::Error(after, kind) => {
                self.statistics.unknown_applied += u64::from(!applied.is_empty());
                self.schedule(sent + after, Happening::Reply { node, life, id, answer: Err(kind) });
            }
            Back::Silence => self.statistics.unknown_applied += u64::from(!applied.is_empty()),
        }
        let hinted =
            exchange.writes.iter().any(|write| matches!(write, Write::Put(put) if put.hint));
        self.applied(applied, hinted)
    }

    /// Shows the checkers what changed in the store, and pushes hints.
    pub(crate) fn applied(
        &mut self,
        applied: Vec<crate::store::Applied>,
        hinted: bool,
    ) -> Result<(), Violation> {
        for change in &applied {
            let sender = self.senders.get(&(change.writer, change.attempt)).copied();
            self.history.applied(self.now, change);
            self.statistics.applied(change);
            let (now, processes) = (self.now, self.processes.as_slice());
            let landing = Landing { now, change, sender, processes };
            self.checks.each(now, |check| check.applied(landing))?;
        }
        if hinted && !applied.is_empty() && self.scenario.push {
            for node in 0..self.processes.len() {
                if self.random.below(1000) >= self.scenario.hints_lost {
                    let after = MILLI + self.random.below(self.scenario.latency);
                    self.schedule(self.now + after, Happening::Hint { node });
                }
            }
        }
        Ok(())
    }

    /// Whether pauses stop the clock, which is a planted mistake.
    pub(crate) fn clock_stops(&self) -> bool {
        self.plant == Plant::ClockStops
    }

    /// Whether witnesses take a process that stands still for a dead one.
    pub(crate) fn paused_is_dead(&self) -> bool {
        self.plant == Plant::PausedIsDead
    }

    pub(crate) fn set_calm(&mut self) {
        self.calm = true;
        self.checks.tell(|check| check.calm(self.now));
    }
}
