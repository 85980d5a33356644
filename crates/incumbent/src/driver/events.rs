//! What the core says has happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use incumbent_core::records::View;
use incumbent_core::{ElectionEvent, LeaseName, MemberId, Moment};
use incumbent_duties::{DutyEvent, DutyId};

use super::Driver;
use crate::driver::clock;
use crate::driver::mutant::{DriverMutant, planted};
use crate::lead::hold::Hold;
use crate::lead::loss::Loss;
use crate::lead::tenure::Tenure;
use crate::lead::trust::Trust;
use crate::node::event::Event;
use crate::node::member::Member;
use crate::node::shared::Held;

impl Driver {
    /// Acts on all events; says whether there were any.
    pub(super) fn react(&mut self) -> bool {
        let mut reacted = false;
        while let Some(event) = self.core.next_event() {
            reacted = true;
            match event {
                DutyEvent::Core(event) => self.act(event),
                DutyEvent::Prepare { duty } => self.prepare(duty),
                DutyEvent::Unprepare { duty } => self.unprepare(&duty),
                DutyEvent::TooLarge { family, duty, most } => {
                    tracing::error!(
                        node = self.name(),
                        action = "serve",
                        family,
                        duty,
                        most,
                        "the duty isn't run: its description doesn't fit into a record of this store; give it fewer parts or labels"
                    );
                }
                DutyEvent::PlanningFailed { reason, again_in } => {
                    tracing::warn!(
                        node = self.name(),
                        action = "plan",
                        reason,
                        again_in_ms = again_in.as_millis() as u64,
                        "duties stay where they are"
                    );
                }
            }
        }
        reacted
    }

    /// Acts on what became of the member, its leases and its cluster.
    fn act(&mut self, event: ElectionEvent) {
        match event {
            ElectionEvent::Joined { member } => self.joined(member),
            ElectionEvent::Elected { lease, term, member } => self.elected(lease, term, member),
            ElectionEvent::Lost { lease, term, why, abrupt } => {
                if lease == LeaseName::leader() {
                    self.shared.set_leads_cluster(false);
                    tracing::debug!(
                        node = self.name(),
                        term,
                        action = "lost",
                        "no longer leads the cluster"
                    );
                } else if let Some(tenure) = self.tenure(&lease, term) {
                    self.lost(&tenure, why.into(), abrupt);
                }
            }
            ElectionEvent::Abort { lease, term } => {
                if let Some(tenure) = self.tenure(&lease, term) {
                    tracing::warn!(node = self.name(), %lease, term, action = "abort", "trust is over while the work was ending");
                    tenure.abort();
                }
            }
            ElectionEvent::Freed { lease, term } => {
                if lease.is_duty() {
                    tracing::debug!(node = self.name(), %lease, term, action = "freed", "freed");
                } else if lease != LeaseName::leader() {
                    tracing::info!(node = self.name(), %lease, term, action = "freed", "freed");
                    self.waiters.freed(&(lease.clone(), term));
                    self.tell(Event::Freed { lease, term });
                }
            }
            ElectionEvent::Observed { lease, record } => {
                self.witnesses.observed(&lease, record.as_ref(), self.core.member());
                let term = record.as_ref().map(|record| record.term);
                let holder = record.and_then(|record| record.holder).map(|holder| holder.node);
                tracing::debug!(node = self.name(), %lease, term, holder, action = "observed", "the lease changed");
            }
            ElectionEvent::Confirmed { lease, term, held } => {
                self.waiters.confirmed(&(lease, term), held);
            }
            ElectionEvent::Viewed(view) => self.viewed(view),
            ElectionEvent::Ended { member, why } => self.ended(member, why.into()),
            ElectionEvent::Left => self.member_left(),
            ElectionEvent::Unreadable(unreadable) => {
                tracing::warn!(node = self.name(), action = "read", %unreadable, "a record can't be read, and nothing is concluded from it");
            }
        }
    }

    fn joined(&mut self, member: MemberId) {
        let alive = self.core.member() == Some(&member);
        let until = if alive { self.core.trusted_until() } else { Moment::START };
        let latency = self.joining.as_ref().map(|joining| clock::now().since(joining.since));
        let latency_us = latency.map(|latency| latency.as_micros() as u64);
        tracing::info!(node = self.name(), cluster = %self.cluster, member = %member, action = "join", latency_us, "joined");
        let trust = Trust::start(until);
        self.shared.pulse.trust(&trust);
        self.shared.pulse.beat(self.config.timing.sent(until));
        self.trust = Some((member.clone(), trust));
        self.shared.member.store(Some(Arc::new(member.clone())));
        if let Some(joining) = self.joining.take()
            && joining.answer.send(Ok(())).is_err()
        {
            // Nobody waits for this node any more.
            self.leave(None);
        }
        self.witnesses.joined(&member);
        self.tell(Event::Joined { member });
    }

    fn elected(&mut self, lease: LeaseName, term: u64, member: MemberId) {
        if lease == LeaseName::leader() {
            self.shared.set_leads_cluster(true);
            tracing::info!(node = self.name(), term, action = "elected", "leads the cluster");
            return;
        }
        if let Some(duty) = DutyId::of(&lease) {
            self.assigned(duty, lease, term, member);
            return;
        }
        let trust = self.trust.as_ref().filter(|(id, _)| *id == member);
        let (Some((_, trust)), Some(candidate)) = (trust, self.campaigns.get(&lease)) else {
            // Nobody wants it any more, so nothing runs under it.
            self.core.stopped(clock::now(), &lease, term);
            return;
        };
        tracing::info!(node = self.name(), %lease, term, member = %member, action = "elected", "elected");
        let tenure = Arc::new(Tenure::new(lease.clone(), term, member, Arc::clone(trust)));
        let hold = Arc::new(Hold::new(Arc::clone(&tenure), self.commands.clone()));
        let held = Held { tenure: Arc::clone(&tenure), hold: Arc::downgrade(&hold) };
        self.elected.push((Arc::clone(&candidate.seat), hold));
        Arc::make_mut(&mut self.held).insert(lease.clone(), held);
        self.held_changed = true;
        self.tenures.insert(lease.clone(), tenure);
        if let Some(meter) = self.counting.lease(&lease) {
            meter.elected(term);
        }
        self.tell(Event::Elected { lease: lease.clone(), term });
        self.sight_leader(lease);
    }

    /// Ends a term. The program knows before anybody else is told.
    pub(super) fn lost(&mut self, tenure: &Tenure, why: Loss, abrupt: bool) {
        let why = match why {
            // The watchdog gave it up, and nobody else.
            Loss::Resigned | Loss::WorkEnded if tenure.is_stuck() => Loss::Stuck,
            why => why,
        };
        if !tenure.end(why, abrupt) {
            return;
        }
        let (lease, term) = (tenure.lease.clone(), tenure.term);
        Arc::make_mut(&mut self.held).remove(&lease);
        self.held_changed = true;
        if lease.is_duty() {
            tracing::debug!(node = self.name(), %lease, term, action = "lost", reason = %why, abrupt, "a duty is to stop");
            return;
        }
        // What ends without its work having been asked was not wanted by anybody.
        if abrupt {
            tracing::warn!(node = self.name(), %lease, term, member = %tenure.member, action = "lost", reason = %why, abrupt, "lost");
        } else {
            tracing::info!(node = self.name(), %lease, term, member = %tenure.member, action = "lost", reason = %why, abrupt, "lost");
        }
        if let Some(meter) = self.counting.lease(&lease) {
            meter.lost(why);
        }
        if let Some(candidate) = self.campaigns.get(&lease) {
            // What nobody has claimed has no work under it.
            drop(candidate.seat.take());
        }
        if !abrupt || !planted(DriverMutant::LossUntold) {
            self.tell(Event::Lost { lease: lease.clone(), term, why });
        }
        self.lost_leader(lease);
    }

    fn ended(&mut self, member: MemberId, why: Loss) {
        if let Some((id, trust)) = &self.trust
            && *id == member
        {
            trust.end();
            self.trust = None;
        }
        self.shared.member.store(None);
        self.duties.stop_preparing();
        self.waiters.forget_freed();
        tracing::info!(node = self.name(), member = %member, action = "ended", reason = %why, "this incarnation is over");
        self.witnesses.ended(&member);
        self.tell(Event::Ended { member, why });
    }

    /// Tells what changed since the last view.
    fn viewed(&mut self, view: View) {
        let members: Vec<Member> = view.members.into_iter().map(Member::from_view).collect();
        let before = self.shared.members.load_full();
        let was_alive = alive(&before);
        let is_alive = alive(&members);
        let closed: BTreeMap<&MemberId, &Member> =
            members.iter().map(|member| (&member.id, member)).collect();
        let mut events = Vec::new();
        for (id, member) in &was_alive {
            if !is_alive.contains_key(*id) {
                let last = closed.get(*id).copied().unwrap_or(member);
                events.push(Event::MemberLeft(last.clone()));
            }
        }
        for (id, member) in &is_alive {
            if !was_alive.contains_key(*id) {
                events.push(Event::MemberJoined((*member).clone()));
            }
        }
        self.shared.members.store(Arc::new(members));
        for event in events {
            self.tell(event);
        }
    }

    /// Tells all subscribers. Those that don't read miss some, so that none can hold this up.
    pub(super) fn tell(&mut self, event: Event) {
        if !self.subscribers.is_empty() {
            self.subscribers.tell(&event);
        }
    }

    pub(super) fn tenure(&self, lease: &LeaseName, term: u64) -> Option<Arc<Tenure>> {
        self.tenures.get(lease).filter(|tenure| tenure.term == term).cloned()
    }

    pub(super) fn name(&self) -> &str {
        &self.config.profile.node
    }
}

fn alive(members: &[Member]) -> BTreeMap<&MemberId, &Member> {
    members.iter().filter(|member| member.is_alive()).map(|member| (&member.id, member)).collect()
}
