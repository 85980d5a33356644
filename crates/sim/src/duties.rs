//! Duties in the simulation: who serves what, on whom they never start, and what operators ask.

use std::collections::BTreeSet;

use incumbent_core::random::Random;
use incumbent_core::records::{Ask, Board, Content, FamilyProfile, Intent, IntentState};
use incumbent_core::store::{Exchange, Expect, Key, Write};
use incumbent_core::{ElectionEvent, LeaseName, Moment, keys};
use incumbent_duties::records::DutySpec;
use incumbent_duties::{DutyEvent, DutyId, DutyNode, DutyStatus, Planning};

use crate::happening::Happening;
use crate::invariants::Violation;
use crate::scenario::{MILLI, NodePlan, draw_span};
use crate::world::World;

/// The one family of the simulation.
pub(crate) const FAMILY: &str = "work";

/// How long a plan takes at most when nothing is in its way.
pub(crate) const SWIFT: u64 = 100 * MILLI;

/// The version that some nodes list duties as; others list none, or 2.
pub(crate) const NEWEST: &str = "3";

/// What a node serves, drawn from the seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServePlan {
    /// The versions it can run.
    pub versions: BTreeSet<String>,
    /// How many of the duties it knows, from the first.
    pub knows: usize,
    /// Duties that never start there.
    pub hangs: BTreeSet<DutyId>,
    /// Duties that always fail there.
    pub fails: BTreeSet<DutyId>,
    /// It lists its duties as [`NEWEST`].
    pub newest: bool,
    /// It says when it is prepared for a duty that runs on another version.
    pub prepares: bool,
}

/// What an operator asks about duties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steer {
    /// This, from now on.
    Ask(Ask),
    /// Nothing of what was asked before.
    TakeBack,
}

/// The duties of a run: none in every second seed.
pub(crate) fn draw_duties(random: &mut Random) -> Vec<DutySpec> {
    if random.below(2) == 0 {
        return Vec::new();
    }
    (0..2 + random.below(6))
        .map(|at| {
            let mut spec = DutySpec::named(&format!("d{}", at + 1));
            spec.version = (random.below(3) == 0).then(|| "2".to_owned());
            spec.weight = 1 + random.below(3) / 2;
            spec
        })
        .collect()
}

impl ServePlan {
    /// The first node can run everything, so that each duty can be placed in the end.
    pub(crate) fn draw(random: &mut Random, at: usize, duties: &[DutySpec]) -> Option<Self> {
        if duties.is_empty() || (at > 0 && random.below(6) == 0) {
            return None;
        }
        let mut plan = Self { knows: duties.len(), ..Self::default() };
        plan.versions.insert("1".to_owned());
        if at == 0 || random.below(2) == 0 {
            plan.versions.insert("2".to_owned());
        }
        if at == 0 {
            return Some(plan);
        }
        plan.knows = random.below(duties.len() as u64 + 1) as usize;
        // A duty is sick on one node at most, which chance picks by its number.
        for (number, duty) in duties.iter().enumerate() {
            let Ok(id) = DutyId::new(FAMILY, &duty.name) else { continue };
            match (number % 4 == at % 4, random.below(4)) {
                (true, 0) => drop(plan.hangs.insert(id)),
                (true, 1) => drop(plan.fails.insert(id)),
                _ => {}
            }
        }
        Some(plan)
    }
}

/// In half of the runs with duties some nodes are of a new version, and in some of these it is
/// broken: what is listed as it never starts, or always fails.
pub(crate) fn draw_deploy(seed: u64, nodes: &mut [NodePlan], duties: &[DutySpec]) {
    let mut random = Random::new(seed ^ 0x00de_9107);
    if duties.is_empty() || random.below(2) == 0 {
        return;
    }
    let broken = random.below(4);
    let knows = random.below(duties.len() as u64 + 1) as usize;
    for node in nodes.iter_mut().skip(1) {
        let Some(serves) = &mut node.serves else { continue };
        serves.prepares = random.below(2) == 0;
        if random.below(2) == 0 {
            continue;
        }
        serves.newest = true;
        serves.versions = [NEWEST.to_owned()].into();
        if broken < 2 {
            // Broken is the version and not the node, or nodes would be found sick one by one.
            serves.knows = knows;
        }
        let listed = duties.iter().take(serves.knows);
        let listed = listed.filter_map(|duty| DutyId::new(FAMILY, &duty.name).ok());
        match broken {
            0 => serves.hangs.extend(listed),
            1 => serves.fails.extend(listed),
            _ => {}
        }
    }
}

/// Serves what the plan says, if anything.
pub(crate) fn serve(core: &mut DutyNode, now: Moment, plan: &NodePlan, duties: &[DutySpec]) {
    let Some(serves) = &plan.serves else { return };
    let ttl = u64::try_from(plan.timing.ttl.as_millis()).unwrap_or(u64::MAX);
    let profile = FamilyProfile {
        versions: serves.versions.clone(),
        acknowledge_ms: ttl,
        grace_ms: ttl,
        prepares: serves.prepares,
        ..FamilyProfile::default()
    };
    let mut listed = duties.get(..serves.knows).unwrap_or(duties).to_vec();
    if serves.newest {
        listed.iter_mut().for_each(|duty| duty.version = Some(NEWEST.to_owned()));
    }
    core.serve(now, FAMILY, profile, &listed);
}

/// What operators and accidents do to duties at an instant of a run.
pub(crate) fn draw_steer(random: &mut Random, nodes: usize, duties: &[DutySpec]) -> Option<Steer> {
    let duty = duties.get(random.below(duties.len().max(1) as u64) as usize)?;
    let duty = format!("{FAMILY}/{}", duty.name);
    // Never the first node, which must be able to run everything.
    let node = format!("node-{}", 2 + random.below(nodes as u64));
    Some(match random.below(9) {
        0 | 1 => Steer::Ask(Ask::Pause { duty }),
        2 => Steer::Ask(Ask::Pin { duty, node, required: false }),
        3 => Steer::Ask(Ask::Move { duty, node }),
        4 => Steer::Ask(Ask::Cordon { node }),
        5 => Steer::Ask(Ask::Drain { node }),
        6 => Steer::Ask(Ask::Pause { duty: "unknown/duty".to_owned() }),
        _ => Steer::TakeBack,
    })
}

impl World {
    /// A duty is to be prepared for: what the program does about it.
    pub(crate) fn duty_event(&mut self, node: usize, event: DutyEvent) {
        let Some(process) = self.processes.get(node) else { return };
        let (life, ttl) = (process.life, self.scenario.longest_ttl());
        if let DutyEvent::Prepare { duty } = event {
            let after = MILLI + self.random.below(ttl / 4);
            self.schedule(self.now + after, Happening::Prepared { node, life, duty });
        }
    }

    /// A duty was elected: what the program does about it.
    pub(crate) fn duty_elected(&mut self, node: usize, event: &ElectionEvent) {
        let Some(process) = self.processes.get(node) else { return };
        let (life, ttl) = (process.life, self.scenario.longest_ttl());
        let ElectionEvent::Elected { lease, term, .. } = event else { return };
        if lease.is_duty() {
            let after = MILLI + self.random.below(ttl / 20);
            let (lease, term) = (lease.clone(), *term);
            let started = Happening::Started { node, life, lease, term };
            self.schedule(self.now + after, started);
        }
    }

    /// A plan takes its time, sometimes longer than a ttl, and the application's own placement may
    /// panic.
    pub(crate) fn make_plan(&mut self, node: usize, planning: Planning) {
        let ttl = self.scenario.longest_ttl();
        let (slow, fails) = (self.random.below(4) == 0, self.random.below(12) == 0);
        let Some(process) = self.processes.get_mut(node) else { return };
        let (life, id) = (process.life, planning.id);
        // Not for ever, or nothing could be asked of the calm.
        let fails = fails && !self.calm && process.failed_plans < 3;
        process.failed_plans = if fails { process.failed_plans + 1 } else { 0 };
        let after = if slow && !self.calm {
            self.statistics.fault("slow plan");
            draw_span(&mut self.random, ttl, self.scenario.aimed)
        } else {
            MILLI + self.random.below(SWIFT)
        };
        let result = if fails {
            self.statistics.fault("plan that fails");
            Err("the placement panicked".to_owned())
        } else {
            Ok(Box::new(planning.run()))
        };
        self.schedule(self.now + after, Happening::Planned { node, life, id, result });
    }

    /// A node is prepared for a duty, or sometimes can't be.
    pub(crate) fn prepared(&mut self, node: usize, duty: &DutyId) -> Result<(), Violation> {
        let fails = !self.calm && self.random.below(16) == 0;
        let result = if fails { Err("no snapshot".to_owned()) } else { Ok(()) };
        self.step(node, |core, now| core.tell_prepared(now, duty, result))
    }

    /// The start of a duty is over, one way or another.
    pub(crate) fn started(
        &mut self,
        node: usize,
        lease: &LeaseName,
        term: u64,
    ) -> Result<(), Violation> {
        let Some(duty) = DutyId::of(lease) else { return Ok(()) };
        let Some(process) = self.processes.get_mut(node) else { return Ok(()) };
        let serves = process.plan.serves.clone().unwrap_or_default();
        if serves.hangs.contains(&duty) {
            return Ok(());
        }
        let status = if serves.fails.contains(&duty) {
            DutyStatus::Failing { times: 3, error: "sick here".to_owned(), gave_up: true }
        } else {
            process.active.insert(lease.clone(), term);
            DutyStatus::Active
        };
        self.step(node, |core, now| core.tell_status(now, &duty, term, status))
    }

    pub(crate) fn steer(&mut self, steer: Steer) -> Result<(), Violation> {
        match steer {
            Steer::Ask(ask) => {
                let intent = self.intent(ask);
                self.operate(keys::intent(&intent.id), Expect::Absent, intent.bytes())?;
            }
            Steer::TakeBack => {
                for (key, version, mut intent) in self.open_intents() {
                    intent.state = IntentState::Done;
                    self.operate(key, Expect::Version(version), intent.bytes())?;
                }
            }
        }
        self.raise_board()
    }

    pub(crate) fn intent(&mut self, ask: Ask) -> Intent {
        self.operator_stamps += 1;
        Intent::open(format!("i{}", self.operator_stamps), ask, "simulator".to_owned(), 0)
    }

    pub(crate) fn raise_board(&mut self) -> Result<(), Violation> {
        let stored = self.store.record(&keys::board());
        let board = stored.as_ref().and_then(|stored| Board::read(stored).ok());
        let mut board = board.unwrap_or_else(Board::fresh);
        board.intents += 1;
        let expect = stored.map_or(Expect::Absent, |stored| Expect::Version(stored.version));
        self.operate(keys::board(), expect, board.bytes())
    }

    fn open_intents(&self) -> Vec<(Key, incumbent_core::store::Version, Intent)> {
        let standing = |intent: &Intent| {
            intent.state == IntentState::Open && !matches!(intent.ask, Ask::Resign { .. })
        };
        self.store
            .records_below(&keys::intents())
            .into_iter()
            .filter_map(|stored| {
                Some((stored.key.clone(), stored.version.clone(), Intent::read(&stored).ok()?))
            })
            .filter(|(_, _, intent)| standing(intent))
            .collect()
    }

    /// All lists of duties are deleted, and the leader that remembers them gives up.
    pub(crate) fn lose_lists(&mut self) -> Result<(), Violation> {
        let lists = self.store.records_below(&keys::catalogs());
        let writes = lists.into_iter().map(|stored| Write::Delete(stored.key)).collect();
        let exchange = Exchange { writes, reads: Vec::new() };
        let (_, applied) = self.store.exchange(self.now, &exchange);
        self.applied(applied, false)?;
        let leader = LeaseName::leader();
        let leads = |process: &crate::process::Process| process.trusts(&leader, self.now).is_some();
        let Some(node) = self.processes.iter().position(leads) else { return Ok(()) };
        self.step(node, |core, now| {
            if let Some(term) = core.held(&leader) {
                core.resign(now, &leader, term, None);
            }
        })
    }

    /// A node knows or can run something else from now on.
    pub(crate) fn change_capabilities(&mut self, node: usize) -> Result<(), Violation> {
        let duties = self.scenario.duties.clone();
        let two = self.random.below(2) == 0;
        let knows = self.random.below(duties.len() as u64 + 1) as usize;
        let Some(process) = self.processes.get_mut(node) else { return Ok(()) };
        let Some(serves) = &mut process.plan.serves else { return Ok(()) };
        // A node of the newest version stays as it is: what is broken is what it lists.
        if node == 0 || process.paused_until > self.now || serves.newest {
            return Ok(());
        }
        serves.knows = knows;
        if two {
            serves.versions.insert("2".to_owned());
        } else {
            serves.versions.remove("2");
        }
        let plan = process.plan.clone();
        self.step(node, |core, now| serve(core, now, &plan, &duties))
    }

    /// In the calm a node that is there becomes one of the newest version, and prepares.
    pub(crate) fn deploy_in_the_calm(&mut self) -> Result<(), Violation> {
        let duties = self.scenario.duties.clone();
        let is_old = |process: &crate::process::Process| {
            process.core.is_some()
                && process.plan.serves.as_ref().is_some_and(|serves| !serves.newest)
        };
        let Some(node) =
            (1..self.processes.len()).find(|node| self.processes.get(*node).is_some_and(is_old))
        else {
            return Ok(());
        };
        self.history.note(self.now, || format!("--- node {} is of the newest version", node + 1));
        self.heal();
        let Some(process) = self.processes.get_mut(node) else { return Ok(()) };
        process.plan.serves = Some(ServePlan {
            versions: [NEWEST.to_owned()].into(),
            knows: duties.len(),
            newest: true,
            prepares: true,
            ..ServePlan::default()
        });
        let plan = process.plan.clone();
        self.step(node, |core, now| serve(core, now, &plan, &duties))
    }

    /// All are well now, or a recovery would have to find the sick ones first.
    fn heal(&mut self) {
        for serves in self.processes.iter_mut().filter_map(|process| process.plan.serves.as_mut()) {
            serves.hangs.clear();
            serves.fails.clear();
        }
    }

    /// In the calm a node that doesn't lead dies for good: its duties are to be recovered.
    pub(crate) fn lose_a_follower(&mut self) {
        let leader = LeaseName::leader();
        // Nor one that holds a lease of the application's: liveness looks after these.
        let leases = &self.leases;
        let follows = |process: &crate::process::Process| {
            process.core.is_some()
                && leases
                    .iter()
                    .chain([&leader])
                    .all(|lease| process.trusts(lease, self.now).is_none())
        };
        let Some(node) =
            (1..self.processes.len()).find(|node| self.processes.get(*node).is_some_and(follows))
        else {
            return;
        };
        self.history.note(self.now, || format!("--- node {} dies in the calm", node + 1));
        self.crash(crate::scenario::Target::Node(node), None);
        self.heal();
    }
}
