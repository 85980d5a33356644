//! A few nodes, played by a script: it decides which request arrives when, and when its reply.

use std::collections::VecDeque;
use std::time::Duration;

use incumbent_core::mutant::Planted;
use incumbent_core::records::{DutySpec, FamilyProfile, Profile};
use incumbent_core::store::{ErrorKind, Exchange, Reply, Write};
use incumbent_core::{
    Candidacy, Config, Event, LeaseName, Moment, Node, Request, RequestId, Timing,
};

use crate::duties::FAMILY;
use crate::plant::Plant;
use crate::store::{Applied, ModelStore};

/// The ttl of everybody on the stage.
pub(crate) const TTL: u64 = 15_000;

/// Nodes with one common clock in milliseconds, and requests held by the script.
pub(crate) struct Stage {
    pub(crate) now: u64,
    pub(crate) store: ModelStore,
    nodes: Vec<Option<Node>>,
    planted: Planted,
    /// What each node sent and the script has not let through yet.
    pub(crate) sent: VecDeque<(usize, Request)>,
    /// What each node was told.
    pub(crate) events: Vec<(usize, Event)>,
    pub(crate) changes: Vec<Applied>,
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
            sent: VecDeque::new(),
            events: Vec::new(),
            changes: Vec::new(),
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment::from_nanos(self.now * 1_000_000)
    }

    /// A node enters; `leads` says whether it may lead the cluster.
    pub(crate) fn enter(&mut self, name: &str, leads: bool) -> usize {
        let mut timing = Timing::for_ttl(Duration::from_millis(TTL));
        timing.jitter = false;
        timing.visible = Duration::from_millis(TTL);
        let config = Config {
            profile: Profile::named(name),
            timing,
            push: false,
            placement: incumbent_core::Placement::default(),
            membership: leads,
            planted: self.planted,
        };
        let node = Node::new(config, self.nodes.len() as u64 + 1, self.moment());
        self.nodes.push(Some(node));
        self.nodes.len() - 1
    }

    pub(crate) fn exit(&mut self, node: usize) {
        if let Some(node) = self.nodes.get_mut(node) {
            *node = None;
        }
    }

    pub(crate) fn campaign(&mut self, node: usize, lease: &LeaseName) {
        let now = self.moment();
        if let Some(Some(node)) = self.nodes.get_mut(node) {
            node.campaign(now, lease.clone(), Candidacy::default());
        }
    }

    /// The node serves these duties, as far as it knows their versions.
    pub(crate) fn serve(&mut self, node: usize, versions: &[&str], duties: &[DutySpec]) {
        let now = self.moment();
        let versions = versions.iter().map(|version| (*version).to_owned()).collect();
        let profile = FamilyProfile { versions, ..FamilyProfile::default() };
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

    pub(crate) fn node(&self, node: usize) -> Option<&Node> {
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
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.poll(now);
            while let Some(event) = core.next_event() {
                self.events.push((node, event));
            }
        }
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

    /// A reply reaches its node.
    pub(crate) fn reply(&mut self, node: usize, id: RequestId, answer: Result<Reply, ErrorKind>) {
        let now = self.moment();
        if let Some(Some(core)) = self.nodes.get_mut(node) {
            core.handle(now, id, answer);
            while let Some(event) = core.next_event() {
                self.events.push((node, event));
            }
        }
        self.poll(node);
    }
}

/// Whether a request writes a key that begins like this.
pub(crate) fn writes(request: &Request, prefix: &str) -> bool {
    request.exchange.writes.iter().any(|write: &Write| write.key().as_str().starts_with(prefix))
}
