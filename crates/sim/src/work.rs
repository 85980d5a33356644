//! What a process does about the events of its core: it works while it leads.

use incumbent_core::{ElectionEvent, LeaseName, MemberId};
use incumbent_duties::DutyEvent;

use crate::happening::Happening;
use crate::invariants::Violation;
use crate::process::Work;
use crate::world::World;

impl World {
    /// Does what the core says, as a program would.
    pub(crate) fn experience(&mut self, node: usize, event: DutyEvent) -> Result<(), Violation> {
        let instant = self.now;
        let name = self.processes.get(node).map_or("?", |p| &p.plan.name).to_owned();
        let event = match event {
            DutyEvent::Core(event) => event,
            other => {
                self.history.note(instant, || format!("{name}: {other:?}"));
                self.duty_event(node, other);
                return Ok(());
            }
        };
        self.history.note(instant, || format!("{name}: {event:?}"));
        let trusts = match &event {
            ElectionEvent::Elected { lease, .. } => {
                self.processes.get(node).and_then(|p| p.trusts(lease, instant)).is_some()
            }
            _ => true,
        };
        self.checks.each(instant, |check| check.experienced(node, &event, trusts))?;
        self.duty_elected(node, &event);
        match event {
            ElectionEvent::Elected { lease, term, member } if lease != LeaseName::leader() => {
                self.begin_work(node, lease, term, member);
            }
            ElectionEvent::Lost { lease, term, abrupt: false, .. }
                if lease != LeaseName::leader() =>
            {
                let ttl = self.scenario.longest_ttl();
                let after = match self.random.below(3) {
                    0 => 0,
                    1 => self.random.below(ttl / 10),
                    _ => self.random.below(ttl),
                };
                let life = self.processes.get(node).map_or(0, |process| process.life);
                self.schedule(instant + after, Happening::Stopped { node, life, lease, term });
            }
            ElectionEvent::Lost { lease, term, .. } | ElectionEvent::Abort { lease, term }
                if lease != LeaseName::leader() =>
            {
                // Even what is aborted takes a moment to end.
                let after = self.random.below(self.scenario.longest_ttl() / 20);
                let life = self.processes.get(node).map_or(0, |process| process.life);
                self.schedule(instant + after, Happening::Stopped { node, life, lease, term });
            }
            ElectionEvent::Left => self.left(node),
            _ => {}
        }
        Ok(())
    }

    fn begin_work(&mut self, node: usize, lease: LeaseName, term: u64, member: MemberId) {
        if let Some(process) = self.processes.get_mut(node) {
            process.work.insert(lease, Work { term, member });
        }
    }

    pub(crate) fn end_work(
        &mut self,
        node: usize,
        lease: &LeaseName,
        term: u64,
    ) -> Result<(), Violation> {
        let Some(process) = self.processes.get_mut(node) else { return Ok(()) };
        if process.work.get(lease).is_some_and(|work| work.term == term) {
            process.work.remove(lease);
            process.active.remove(lease);
        }
        self.step(node, |core, now| core.stopped(now, lease, term))
    }

    fn left(&mut self, node: usize) {
        let instant = self.now;
        let Some(process) = self.processes.get_mut(node) else { return };
        process.core = None;
        process.wake = u64::MAX;
        if let Some(after) = process.back_after.take() {
            self.schedule(instant + after, Happening::Start { node });
        }
    }
}
