//! What faults and operators do to the world.

use incumbent_core::records::{Ask, Content, LeaseRecord, MemberRecord, MemberState};
use incumbent_core::store::{Exchange, Expect, Key, Put, Stamp, Write};
use incumbent_core::{MemberId, keys};

use crate::happening::Happening;
use crate::invariants::Violation;
use crate::process::Process;
use crate::scenario::{Fault, MILLI, Target};
use crate::world::World;

/// The operator's writer id: no core draws it.
const OPERATOR: u64 = 0;

impl World {
    pub(crate) fn strike(&mut self, fault: Fault) -> Result<(), Violation> {
        self.statistics.fault(fault.kind());
        self.history.note(self.now, || format!("--- {fault:?}"));
        match fault {
            Fault::Crash(target, back) => self.crash(target, back),
            Fault::Pause(target, span) => self.pause(target, span),
            Fault::Isolate(target, span) => {
                let until = self.now + span;
                self.with(target, |process| process.isolated_until = until);
            }
            Fault::Deafen(target, span) => {
                let until = self.now + span;
                self.with(target, |process| process.deaf_until = until);
            }
            Fault::Outage(span) => {
                self.outage_until = self.now + span;
                self.outage_refuses = self.random.below(2) == 0;
            }
            Fault::Storm(span) => self.storm_until = self.now + span,
            Fault::Evict(target) => return self.evict(target),
            Fault::Resign(lease) => return self.resign(lease, None),
            Fault::Transfer(lease, to) => return self.resign(lease, Some(to)),
            Fault::AskToResign(lease) => return self.ask_to_resign(lease),
            Fault::Leave(target, back) => return self.leave(target, back),
            Fault::WorkEnds(lease) => return self.work_ends(lease),
            Fault::Withdraw(target, lease, back) => return self.withdraw(target, lease, back),
            Fault::WallJump(target, millis) => {
                self.with(target, |process| process.clock.wall_ms += millis);
            }
            Fault::StoreClockJump(nanos) => self.store.skew = nanos,
            Fault::Steer(steer) => return self.steer(steer),
            Fault::LoseLists => return self.lose_lists(),
            Fault::Capabilities(node) => return self.change_capabilities(node),
            Fault::LoseFollower => self.lose_a_follower(),
            Fault::Deploy => return self.deploy_in_the_calm(),
            Fault::HandOver => return self.hand_over(),
            Fault::StaleReads(span, replica) => {
                let replica = replica.map(|ago| self.now.saturating_sub(ago));
                self.stale = (self.now + span, replica);
            }
            Fault::Forget(extent, back) => self.forget(extent, back),
        }
        Ok(())
    }

    fn node(&self, target: Target) -> Option<usize> {
        match target {
            Target::Node(node) => Some(node),
            Target::Holder(lease) => self.holder(lease),
        }
    }

    /// The process that trusts that it holds this lease.
    fn holder(&self, lease: usize) -> Option<usize> {
        let lease = self.leases.get(lease)?;
        self.processes.iter().position(|process| process.trusts(lease, self.now).is_some())
    }

    fn with(&mut self, target: Target, change: impl FnOnce(&mut crate::process::Process)) {
        if let Some(process) = self.node(target).and_then(|node| self.processes.get_mut(node)) {
            change(process);
        }
    }

    pub(crate) fn crash(&mut self, target: Target, back: Option<u64>) {
        let Some(node) = self.node(target) else { return };
        // The first node stays with us, so that each lease has a live candidate in the end.
        let back = if node == 0 { back.or(Some(self.scenario.longest_ttl())) } else { back };
        let Some(process) = self.processes.get_mut(node) else { return };
        let member = process.member().cloned();
        if process.core.take().is_none() {
            return;
        }
        process.work.clear();
        process.active.clear();
        process.wake = u64::MAX;
        process.life += 1;
        process.paused_until = 0;
        if let Some(after) = back {
            self.schedule(self.now + after, Happening::Start { node });
        }
        if let Some(member) = member {
            self.witness(node, &member);
        }
    }

    /// Nodes on the same host see that a process died, sooner or later; those elsewhere don't.
    fn witness(&mut self, dead: usize, member: &MemberId) {
        for node in (0..self.processes.len()).filter(|node| *node != dead) {
            if self.random.below(3) == 0 {
                self.statistics.fault("proof of death");
                let at = self.now + self.random.below(300 * MILLI);
                self.schedule(at, Happening::Dead { node, member: member.clone() });
            }
        }
    }

    pub(crate) fn pause(&mut self, target: Target, span: u64) {
        // Nobody is paused any more when the faults stop.
        let until = (self.now + span).min(self.scenario.calm_from);
        let (span, stops) = (until.saturating_sub(self.now), self.clock_stops());
        self.with(target, |process| {
            process.paused_until = process.paused_until.max(until);
            if stops {
                process.clock.lost += span;
            }
        });
        if self.paused_is_dead()
            && let Some(node) = self.node(target)
            && let Some(member) = self.processes.get(node).and_then(Process::member).cloned()
        {
            self.witness(node, &member);
        }
    }

    fn evict(&mut self, target: Target) -> Result<(), Violation> {
        let Some(node) = self.node(target) else { return Ok(()) };
        let Some(id) = self.processes.get(node).and_then(|process| process.member().cloned())
        else {
            return Ok(());
        };
        let key = keys::member(&id);
        let Some(stored) = self.store.record(&key) else { return Ok(()) };
        let Ok(record) = MemberRecord::read(&stored) else { return Ok(()) };
        if record.state != MemberState::Alive {
            return Ok(());
        }
        let evicted = record.closed(MemberState::Evicted);
        self.operate(key, Expect::Version(stored.version), evicted.bytes())
    }

    /// An operator's write, which always gets through.
    pub(crate) fn operate(
        &mut self,
        key: Key,
        expect: Expect,
        value: Vec<u8>,
    ) -> Result<(), Violation> {
        self.operator_stamps += 1;
        let stamp = Stamp { writer: OPERATOR, attempt: self.operator_stamps };
        let write = Write::Put(Put { key, expect, value, stamp, hint: true, durable: true });
        let exchange = Exchange { writes: vec![write], reads: Vec::new() };
        let (_, applied) = self.store.exchange(self.now, &exchange);
        self.applied(applied, true)
    }

    fn resign(&mut self, lease: usize, to: Option<usize>) -> Result<(), Violation> {
        let Some(node) = self.holder(lease) else { return Ok(()) };
        let Some(name) = self.leases.get(lease).cloned() else { return Ok(()) };
        let to = to.and_then(|to| self.processes.get(to)).and_then(|to| to.member().cloned());
        self.step(node, |core, now| {
            if let Some(term) = core.held(&name) {
                core.resign(now, &name, term, to);
            }
        })
    }

    /// All leases change hands at once. Duties do when they are evened out, which moves them anyway.
    fn hand_over(&mut self) -> Result<(), Violation> {
        (0..self.leases.len()).try_for_each(|lease| self.resign(lease, None))
    }

    fn ask_to_resign(&mut self, lease: usize) -> Result<(), Violation> {
        let Some(name) = self.leases.get(lease).cloned() else { return Ok(()) };
        let Some(stored) = self.store.record(&keys::lease(&name)) else { return Ok(()) };
        let Ok(record) = LeaseRecord::read(&stored) else { return Ok(()) };
        let ask =
            Ask::Resign { lease: name.as_str().to_owned(), term: record.term, successor: None };
        let intent = self.intent(ask);
        self.operate(keys::intent(&intent.id), Expect::Absent, intent.bytes())?;
        self.raise_board()
    }

    fn leave(&mut self, target: Target, back: u64) -> Result<(), Violation> {
        let Some(node) = self.node(target) else { return Ok(()) };
        let Some(process) = self.processes.get_mut(node) else { return Ok(()) };
        if process.paused_until > self.now || process.core.is_none() {
            return Ok(());
        }
        process.back_after = Some(back);
        self.step(node, |core, now| core.leave(now))
    }

    fn work_ends(&mut self, lease: usize) -> Result<(), Violation> {
        let Some(node) = self.holder(lease) else { return Ok(()) };
        let Some(name) = self.leases.get(lease).cloned() else { return Ok(()) };
        let Some(process) = self.processes.get(node) else { return Ok(()) };
        if process.paused_until > self.now {
            return Ok(());
        }
        match process.work.get(&name).map(|work| work.term) {
            Some(term) => self.end_work(node, &name, term),
            None => Ok(()),
        }
    }

    fn withdraw(&mut self, target: Target, lease: usize, back: u64) -> Result<(), Violation> {
        let Some(node) = self.node(target) else { return Ok(()) };
        let Some(name) = self.leases.get(lease).cloned() else { return Ok(()) };
        if self.processes.get(node).is_some_and(|process| process.paused_until > self.now) {
            return Ok(());
        }
        self.schedule(self.now + back, Happening::Want { node, lease });
        self.step(node, |core, now| core.withdraw(now, &name))
    }

    pub(crate) fn want(&mut self, node: usize, lease: usize) -> Result<(), Violation> {
        let Some(name) = self.leases.get(lease).cloned() else { return Ok(()) };
        let candidacy = self
            .processes
            .get(node)
            .and_then(|process| process.plan.candidacies.get(lease).cloned().flatten());
        let Some(candidacy) = candidacy else { return Ok(()) };
        self.step(node, |core, now| core.campaign(now, name, candidacy))
    }

    /// All faults stop: everybody goes on, everything gets through.
    pub(crate) fn calm_down(&mut self) -> Result<(), Violation> {
        self.history.note(self.now, || "--- calm".to_owned());
        self.storm_until = 0;
        self.outage_until = 0;
        self.stale = (0, None);
        self.store.skew = 0;
        self.store.forgets_the_new = false;
        for process in &mut self.processes {
            process.isolated_until = 0;
            process.deaf_until = 0;
            process.paused_until = process.paused_until.min(self.now);
        }
        self.set_calm();
        for node in 0..self.processes.len() {
            self.step(node, |_, _| {})?;
            for lease in 0..self.leases.len() {
                self.want(node, lease)?;
            }
        }
        self.start_first()
    }

    fn start_first(&mut self) -> Result<(), Violation> {
        if self.processes.first().is_some_and(|process| process.core.is_none()) {
            self.schedule(self.now, Happening::Start { node: 0 });
        }
        Ok(())
    }
}
