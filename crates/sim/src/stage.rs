//! A few nodes, played by a script: it decides which request arrives when, and when its reply.

use std::collections::VecDeque;
use std::time::Duration;

use incumbent_core::mutant::Planted;
use incumbent_core::records::{FamilyProfile, Profile};
use incumbent_core::store::{ErrorKind, Exchange, Expect, Key, Put, Read, Reply, Stamp, Write};
use incumbent_core::{
    Config, ElectionEvent, LeaseName, MemberId, Moment, Request, RequestId, Rhythm, Stance, Timing,
};
use incumbent_duties::records::DutySpec;
use incumbent_duties::{DutyEvent, DutyId, DutyNode, DutyStatus, Placement, Planning};

use crate::duties::FAMILY;
use crate::plant::Plant;
use crate::store::{Applied, ModelStore};

/// The ttl of everybody on the stage.
pub(crate) const TTL: u64 = 15_000;

/// Nodes with one common clock in milliseconds, and requests held by the script.
pub(crate) struct Stage {
    pub(crate) now: u64,
    pub(crate) store: ModelStore,
    nodes: Vec<Option<DutyNode>>,
    planted: Planted,
    /// What everybody's wall clock showed at the beginning, in milliseconds.
    pub(crate) wall: u64,
    /// What each node sent and the script has not let through yet.
    pub(crate) sent: VecDeque<(usize, Request)>,
    /// What each node was told.
    pub(crate) events: Vec<(usize, ElectionEvent)>,
    /// And what about duties.
    pub(crate) notices: Vec<DutyEvent>,
    pub(crate) changes: Vec<Applied>,
    /// The largest value that the store takes.
    pub(crate) max_value: usize,
    /// Whether plans wait for the script.
    pub(crate) holds_plans: bool,
    /// Plans that do.
    pub(crate) plans: VecDeque<(usize, Planning)>,
}

/// What the script does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It is applied, and the reply comes at once.
    Through,
    /// It is kept for later; the sender hears nothing.
    Hold,
    /// It is kept for later; the sender hears that the outcome is unknown.
    Doubt,
    /// It never arrives.
    Drop,
}

impl Stage {
    pub(crate) fn new(plant: Plant) -> Self {
        let (planted, flaw) = match plant {
            Plant::Core(mutant) => (Planted::new(Some(mutant)), None),
            Plant::Store(flaw) => (Planted::default(), Some(flaw)),
            Plant::Nothing | Plant::ClockStops | Plant::WallClock | Plant::PausedIsDead => {
                (Planted::default(), None)
            }
        };
        Self {
            now: 1_000,
            store: ModelStore::new(flaw),
            nodes: Vec::new(),
            planted,
            wall: 0,
            sent: VecDeque::new(),
            events: Vec::new(),
            notices: Vec::new(),
            changes: Vec::new(),
            max_value: 16 << 20,
            holds_plans: false,
            plans: VecDeque::new(),
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment::from_nanos(self.now * 1_000_000)
    }

    /// A node enters; `leads` says whether it may lead the cluster.
    pub(crate) fn enter(&mut self, name: &str, leads: bool) -> usize {
        let mut timing = Timing::for_ttl(Duration::from_millis(TTL));
        timing.rhythm = Rhythm::Exact;
        timing.visible = Duration::from_millis(TTL);
        let config = Config {
            profile: Profile::named(name),
            timing,
            push: false,
            max_value: self.max_value,
            membership: leads,
            planted: self.planted,
        };
        let node =
            DutyNode::new(config, Placement::default(), self.nodes.len() as u64 + 1, self.moment());
        self.nodes.push(Some(node));
        self.nodes.len() - 1
    }

    /// The node is gone at once, and another enters that knows what it has seen.
    pub(crate) fn enter_after(&mut self, node: usize, name: &str) -> usize {
        let past = self.node(node).map(|node| node.past());
        self.exit(node);
        let next = self.enter(name, false);
        if let (Some(Some(core)), Some(past)) = (self.nodes.get_mut(next), past) {
            core.recall(past);
        }
        next
    }

    pub(crate) fn exit(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            *node = None;
        }
    }

    pub(crate) fn campaign(&mut self, node: usize, lease: &LeaseName) {
        let now = self.moment();
        if let Some(Some(node)) = self.nodes.get_mut(node) {
            node.campaign(now, lease.clone(), Stance::default());
        }
    }

    /// The node watches the lease, and doesn't want to hold it.
    pub(crate) fn follow(&mut self, node: usize, lease: &LeaseName) {
        let now = self.moment();
        if let Some(Some(node)) = self.nodes.get_mut(node) {
            let candidacy = Stance { electable: false, ..Stance::default() };
            node.campaign(now, lease.clone(), candidacy);
        }
    }

    /// The node serves these duties, as far as it knows their versions.
    pub(crate) fn serve(&mut self, node: usize, versions: &[&str], duties: &[DutySpec]) {
        self.serve_as(node, FamilyProfile::default(), versions, duties);
    }

    /// The node serves these duties as its profile says, as far as it knows their versions.
    pub(crate) fn serve_as(
        &mut self,
        node: usize,
        profile: FamilyProfile,
        versions: &[&str],
        duties: &[DutySpec],
    ) {
        let now = self.moment();
        let versions = versions.iter().map(|version| (*version).to_owned()).collect();
        let profile = FamilyProfile { versions, ..profile };
        if let Some(Some(node)) = self.nodes.get_mut(node) {
            node.serve(now, FAMILY, profile, duties);
        }
    }

    /// The node doesn't want the lease any more; work under it ends at once.
    pub(crate) fn withdraw(&mut self, node: usize, lease: &LeaseName) {
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.withdraw(now, lease);
            if let Some(term) = core.trusts(lease, now) {
                core.stopped(now, lease, term);
            }
        }
    }

    /// The work under a term that the node has lost ends.
    pub(crate) fn stopped(&mut self, node: usize, lease: &LeaseName, term: u64) {
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.stopped(now, lease, term);
        }
    }

    /// What the node was elected for has started.
    pub(crate) fn started(&mut self, node: usize, duty: &DutyId) {
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node)
            && let Some(term) = core.trusts(&duty.lease(), now)
        {
            core.tell_status(now, duty, term, DutyStatus::Active);
        }
    }

    /// A hint reaches the node.
    pub(crate) fn hint(&mut self, node: usize) {
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.hint(now);
        }
    }

    /// A witness tells the node that a member is dead.
    pub(crate) fn prove_dead(&mut self, node: usize, member: &MemberId) {
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.proven_dead(now, member);
        }
    }

    pub(crate) fn node(&self, node: usize) -> Option<&DutyNode> {
        self.nodes.get(node)?.as_ref()
    }

    pub(crate) fn trusts(&self, node: usize, lease: &LeaseName) -> Option<u64> {
        self.node(node)?.trusts(lease, self.moment())
    }

    /// Time goes by until this millisecond; `judge` decides about each request.
    pub(crate) fn play(&mut self, until: u64, mut judge: impl FnMut(usize, &Request) -> Pass) {
        while self.now < until {
            self.now += 1;
            self.beat_once(&mut judge);
        }
    }

    fn beat_once(&mut self, judge: &mut impl FnMut(usize, &Request) -> Pass) {
        for node in 0..self.nodes.len() {
            self.poll(node);
            // What is let through may make the node send more, at once.
            for _ in 0..8 {
                for (id, request) in self.requests(node) {
                    match judge(node, &request) {
                        Pass::Through => {
                            let reply = self.apply(&request.exchange);
                            self.reply(node, id, Ok(reply));
                        }
                        Pass::Hold => self.sent.push_back((node, request)),
                        Pass::Doubt => {
                            self.sent.push_back((node, request));
                            self.reply(node, id, Err(ErrorKind::Unknown));
                        }
                        Pass::Drop => {}
                    }
                }
            }
        }
    }

    pub(crate) fn poll(&mut self, node: usize) {
        let (now, wall) = (self.moment(), self.wall);
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            if wall > 0 {
                core.tell_wall(wall + self.now);
            }
            core.poll(now);
            while let Some(planning) = core.next_planning() {
                if self.holds_plans {
                    self.plans.push_back((node, planning));
                } else {
                    let id = planning.id;
                    core.planned(now, id, Ok(planning.run()));
                }
            }
            while let Some(event) = core.next_event() {
                match event {
                    DutyEvent::Core(event) => self.events.push((node, event)),
                    other => self.notices.push(other),
                }
            }
        }
    }

    /// A plan that waited is made, or can't be.
    pub(crate) fn make_plan(&mut self, fails: bool) -> bool {
        let Some((node, planning)) = self.plans.pop_front() else { return false };
        let (now, id) = (self.moment(), planning.id);
        let result = if fails { Err("it panicked".to_owned()) } else { Ok(planning.run()) };
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.planned(now, id, result);
        }
        self.poll(node);
        true
    }

    /// An operator writes a record.
    pub(crate) fn operate(&mut self, key: Key, value: Vec<u8>) {
        let expect = self
            .store
            .record(&key)
            .map_or(Expect::Absent, |stored| Expect::Version(stored.version));
        let stamp = Stamp { writer: 0, attempt: self.now };
        let put = Put { key, expect, value, stamp, hint: true, durable: true };
        self.apply(&Exchange { writes: vec![Write::Put(put)], reads: Vec::new() });
    }

    fn requests(&mut self, node: usize) -> Vec<(RequestId, Request)> {
        let Some(Some(core)) = self.nodes.get_mut(node) else { return Vec::new() };
        std::iter::from_fn(|| core.next_request()).map(|request| (request.id, request)).collect()
    }

    /// A request arrives at the store.
    pub(crate) fn apply(&mut self, exchange: &Exchange) -> Reply {
        let (reply, mut applied) = self.store.exchange(self.now * 1_000_000, exchange);
        self.changes.append(&mut applied);
        reply
    }

    /// A request arrives at the store, and its reads are answered as they were at a millisecond
    /// before.
    pub(crate) fn apply_as_of(&mut self, then: u64, exchange: &Exchange) -> Reply {
        let (now, then) = (self.now * 1_000_000, then * 1_000_000);
        let (reply, mut applied) = self.store.exchange_as_of(now, then, exchange);
        self.changes.append(&mut applied);
        reply
    }

    /// The store loses all records whose keys begin so.
    pub(crate) fn forget(&mut self, prefixes: &[&str]) {
        self.store.forget(self.now * 1_000_000, prefixes, None);
    }

    /// What is under these keys goes back to what it was at a millisecond before.
    pub(crate) fn set_back(&mut self, then: u64, prefixes: &[&str]) {
        self.store.forget(self.now * 1_000_000, prefixes, Some(then * 1_000_000));
    }

    /// A reply reaches its node.
    pub(crate) fn reply(&mut self, node: usize, id: RequestId, answer: Result<Reply, ErrorKind>) {
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.handle(now, id, answer);
            while let Some(event) = core.next_event() {
                match event {
                    DutyEvent::Core(event) => self.events.push((node, event)),
                    other => self.notices.push(other),
                }
            }
        }
        self.poll(node);
    }
}

/// Whether a request writes a key that begins like this.
pub(crate) fn writes(request: &Request, prefix: &str) -> bool {
    request.exchange.writes.iter().any(|write: &Write| write.key().as_str().starts_with(prefix))
}

/// Whether a request reads a key that begins like this.
pub(crate) fn reads(request: &Request, prefix: &str) -> bool {
    request.exchange.reads.iter().any(|read| match read {
        Read::Key { key, .. } => key.as_str().starts_with(prefix),
        Read::Prefix(_) => false,
    })
}
