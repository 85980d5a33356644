//! What a seed stands for: a cluster, its clocks, and what goes wrong when.

use std::time::Duration;

use incumbent_core::random::Random;
use incumbent_core::records::ClusterLead;
use incumbent_core::{Moment, Preference, Rhythm, Stance, Timing};
use incumbent_duties::records::DutySpec;

use crate::duties::{self, ServePlan, Steer};

/// Nanoseconds in a millisecond.
pub const MILLI: u64 = 1_000_000;

/// The drift that the default margin of ttl/10 covers, in parts in a million: 2ρ/(1+ρ) = 0.1.
pub const MAX_DRIFT: i64 = 52_000;

/// A whole simulated run, drawn from a seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed it was drawn from.
    pub seed: u64,
    /// The nodes that take part.
    pub nodes: Vec<NodePlan>,
    /// How many leases there are.
    pub leases: usize,
    /// Whether the store pushes.
    pub push: bool,
    /// Of a thousand hints, so many are lost.
    pub hints_lost: u64,
    /// The longest way to the store or back in calm weather.
    pub latency: u64,
    /// What goes wrong, in order of time.
    pub faults: Vec<(u64, Fault)>,
    /// When the last fault is over.
    pub calm_from: u64,
    /// When the run ends.
    pub end: u64,
    /// Of a thousand requests, so many fare ill even in calm weather.
    pub drizzle: u64,
    /// Whether reads may miss records that are just a few seconds old, until the calm.
    pub forgets_the_new: bool,
    /// The duties of the cluster; none in half of the runs.
    pub duties: Vec<DutySpec>,
    /// Whether delays sit at the boundaries of the protocol's times.
    pub aimed: bool,
}

/// One node of the cluster.
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// Its name; some collide.
    pub name: String,
    /// The times it runs by.
    pub timing: Timing,
    /// By how much its clock is fast, in parts in a million.
    pub ppm: i64,
    /// What its clock shows at the start.
    pub offset: u64,
    /// How it stands for each lease; nothing where it doesn't.
    pub candidacies: Vec<Option<Stance>>,
    /// Whether it follows who leads the cluster, and may lead it.
    pub membership: bool,
    /// How it stands for that.
    pub cluster_lead: ClusterLead,
    /// The duties it serves, if any.
    pub serves: Option<ServePlan>,
}

/// Whom a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This node.
    Node(usize),
    /// Whoever holds this lease then.
    Holder(usize),
}

/// Something that goes wrong, or that an operator does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies, and starts again after so long, or never.
    Crash(Target, Option<u64>),
    /// The process stands still for so long.
    Pause(Target, u64),
    /// The node can't reach the store for so long.
    Isolate(Target, u64),
    /// The node's requests arrive, but replies don't, for so long.
    Deafen(Target, u64),
    /// Nobody can reach the store for so long.
    Outage(u64),
    /// Requests fare ill for so long.
    Storm(u64),
    /// An operator throws the member out.
    Evict(Target),
    /// The holder of this lease gives it up.
    Resign(usize),
    /// The holder of this lease gives it up for another node.
    Transfer(usize, usize),
    /// An operator asks through the store that the holder of this lease gives it up.
    AskToResign(usize),
    /// The node leaves, and comes back after so long.
    Leave(Target, u64),
    /// The work under this lease ends by itself.
    WorkEnds(usize),
    /// The node doesn't want this lease any more, and wants it again after so long.
    Withdraw(Target, usize, u64),
    /// The node's wall clock jumps by so many milliseconds.
    WallJump(Target, i64),
    /// The store's clock jumps by so many nanoseconds.
    StoreClockJump(i64),
    /// An operator asks for something about duties.
    Steer(Steer),
    /// The lists of duties are deleted, and the leader gives up.
    LoseLists,
    /// This node knows other duties and can run other versions.
    Capabilities(usize),
    /// In the calm, a node that doesn't lead dies for good.
    LoseFollower,
    /// In the calm, a node becomes one of the newest version, which prepares.
    Deploy,
    /// In the calm, all leases change hands at once.
    HandOver,
    /// For so long reads may be answered from any earlier state, or from that of a replica that was
    /// cut off so long ago.
    StaleReads(u64, Option<u64>),
    /// The store forgets: everything, or what came after an instant so long ago.
    Forget(Extent, Option<u64>),
}

/// How much a store forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All records.
    Everything,
    /// Those of leases.
    Leases,
    /// Those of members.
    Members,
}

impl Fault {
    /// What kind of fault it is, for statistics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Crash(..) => "crash",
            Self::Pause(..) => "pause",
            Self::Isolate(..) => "isolation",
            Self::Deafen(..) => "lost replies",
            Self::Outage(_) => "store outage",
            Self::Storm(_) => "storm",
            Self::Evict(_) => "eviction",
            Self::Resign(_) => "resignation",
            Self::Transfer(..) => "transfer",
            Self::AskToResign(_) => "resign request",
            Self::Leave(..) => "leave",
            Self::WorkEnds(_) => "work ended",
            Self::Withdraw(..) => "withdrawal",
            Self::WallJump(..) => "wall-clock jump",
            Self::StoreClockJump(_) => "store-clock jump",
            Self::Steer(_) => "an operator steers duties",
            Self::LoseLists => "lists lost",
            Self::Capabilities(_) => "capabilities changed",
            Self::LoseFollower => "follower lost in the calm",
            Self::Deploy => "deploy in the calm",
            Self::HandOver => "hand-over in the calm",
            Self::StaleReads(..) => "stale reads",
            Self::Forget(..) => "store forgot",
        }
    }
}

impl Scenario {
    /// Draws the scenario that this seed stands for.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5ca1_ab1e);
        let aimed = seed % 2 == 1;
        let leases = 1 + random.below(3) as usize;
        let count = 2 + random.below(4) as usize;
        let ttl = pick(&mut random, [3_000, 6_000, 15_000]);
        let mixed = random.below(4) == 0;
        let mut nodes: Vec<NodePlan> =
            (0..count).map(|at| NodePlan::draw(&mut random, at, leases, ttl, mixed)).collect();
        let longest = nodes.iter().map(|node| nanos(node.timing.ttl)).max().unwrap_or(1);
        let start = 2 * longest;
        let span = 14 * longest;
        let mut faults: Vec<(u64, Fault)> = (0..22 + random.below(14))
            .map(|_| {
                let at = start + random.below(span);
                (at, draw_fault(&mut random, count, leases, longest, aimed))
            })
            .collect();
        let calm_from = start + span + longest / 2;
        let duties = duties::draw_duties(&mut random);
        for (at, node) in nodes.iter_mut().enumerate() {
            node.serves = ServePlan::draw(&mut random, at, &duties);
            node.membership |= node.serves.is_some();
        }
        duties::draw_deploy(seed, &mut nodes, &duties);
        draw_cluster_leads(seed, &mut nodes);
        let mut end = calm_from + 8 * longest + 10_000 * MILLI;
        if duties.is_empty() && random.below(6) == 0 {
            // Nobody leads the cluster, and what the dead leave behind is swept now and then.
            nodes.iter_mut().for_each(|node| node.membership = false);
            end = calm_from + 48 * longest + 10_000 * MILLI;
        }
        if !duties.is_empty() {
            for _ in 0..4 + random.below(8) {
                let at = start + random.below(span);
                faults.push((at, draw_duty_fault(&mut random, count, &duties)));
            }
            faults.push((calm_from + DutyTimes::LISTS_LOST * longest, Fault::LoseLists));
            faults.push((calm_from + DutyTimes::FOLLOWER_LOST * longest, Fault::LoseFollower));
            faults.push((calm_from + DutyTimes::DEPLOY * longest, Fault::Deploy));
            end = calm_from + DutyTimes::END * longest + 10_000 * MILLI;
        }
        for _ in 0..random.below(8).saturating_sub(5) {
            // What is lost last is made up for before the calm.
            let at = start + random.below(span - 2 * longest);
            faults.push((at, draw_loss(&mut random, longest, duties.is_empty())));
        }
        // These are over before the rest of what happens in the calm.
        faults.extend([3, 5].map(|half| (calm_from + half * longest / 2, Fault::HandOver)));
        faults.sort_by_key(|(at, _)| *at);
        Self {
            seed,
            leases,
            push: random.below(2) == 0,
            hints_lost: pick(&mut random, [0, 500, 1000]),
            latency: pick(&mut random, [2, 10, 40]) * MILLI,
            faults,
            calm_from,
            end,
            duties,
            drizzle: 5 + random.below(30),
            forgets_the_new: random.below(5) == 0,
            nodes,
            aimed,
        }
    }

    /// Whether somebody may lead the cluster.
    #[must_use]
    pub fn is_led(&self) -> bool {
        self.nodes.iter().any(|node| node.membership)
    }

    /// The longest ttl in the cluster, in nanoseconds.
    #[must_use]
    pub fn longest_ttl(&self) -> u64 {
        self.nodes.iter().map(|node| nanos(node.timing.ttl)).max().unwrap_or(1)
    }
}

impl NodePlan {
    fn draw(random: &mut Random, at: usize, leases: usize, ttl: u64, mixed: bool) -> Self {
        let ttl = if mixed { pick(random, [3_000, 5_000, 9_000]) } else { ttl };
        let mut timing = Timing::for_ttl(Duration::from_millis(ttl));
        timing.visible = Duration::from_millis(ttl * 3 / 2);
        let ppm = match random.below(4) {
            0 => MAX_DRIFT,
            1 => -MAX_DRIFT,
            _ => random.below(2 * MAX_DRIFT as u64) as i64 - MAX_DRIFT,
        };
        let candidacies = (0..leases)
            .map(|lease| {
                // The first node stands for everything, so that each lease has a candidate.
                let stands = at == 0 || random.below(5) > 0;
                stands.then(|| Stance {
                    electable: at == 0 || random.below(8) > 0,
                    preference: draw_preference(random),
                    payload: (lease == 0).then(|| format!("node {at}")),
                })
            })
            .collect();
        let name =
            if random.below(6) == 0 { "twin".to_owned() } else { format!("node-{}", at + 1) };
        let offset = random.below(1_000_000_000_000);
        if offset.is_multiple_of(4) {
            // As do the members for which one process beats.
            timing.rhythm = Rhythm::Together(Moment::START);
        }
        Self {
            name,
            timing,
            ppm,
            offset,
            candidacies,
            membership: at == 0 || random.below(4) > 0,
            cluster_lead: ClusterLead::Normal,
            serves: None,
        }
    }
}

/// What happens to duties after the faults have stopped, in ttls since then.
pub struct DutyTimes;

impl DutyTimes {
    /// From here on every duty that can run does, and stays where it is.
    pub const PLACED: u64 = 10;
    /// The lists are lost and the leader gives up, which moves nothing.
    pub const LISTS_LOST: u64 = 11;
    /// A follower dies.
    pub const FOLLOWER_LOST: u64 = 13;
    /// A node becomes one of the newest version.
    pub const DEPLOY: u64 = 16;
    /// The run ends, and some seconds more.
    pub const END: u64 = 22;
}

/// In every third run some nodes don't like to lead the cluster. The first does it
/// if it must.
fn draw_cluster_leads(seed: u64, nodes: &mut [NodePlan]) {
    let mut random = Random::new(seed ^ 0x0001_ead5);
    if random.below(3) > 0 {
        return;
    }
    for (at, node) in nodes.iter_mut().enumerate() {
        node.cluster_lead = match random.below(4) {
            0 | 1 => ClusterLead::Normal,
            2 if at > 0 => ClusterLead::Never,
            _ => ClusterLead::IfNeeded,
        };
    }
}

fn draw_duty_fault(random: &mut Random, nodes: usize, duties: &[DutySpec]) -> Fault {
    match random.below(8) {
        0 => Fault::LoseLists,
        1..=3 => Fault::Capabilities(random.below(nodes as u64) as usize),
        _ => duties::draw_steer(random, nodes, duties).map_or(Fault::LoseLists, Fault::Steer),
    }
}

fn pick(random: &mut Random, [one, two, three]: [u64; 3]) -> u64 {
    match random.below(3) {
        0 => one,
        1 => two,
        _ => three,
    }
}

fn draw_preference(random: &mut Random) -> Preference {
    match random.below(6) {
        0 => Preference::Priority(random.below(256) as u8),
        1 => Preference::LongestRunning,
        _ => Preference::None,
    }
}

/// How long something lasts: anything, or close to one of the protocol's boundaries.
pub fn draw_span(random: &mut Random, ttl: u64, aimed: bool) -> u64 {
    if !aimed {
        return random.below(2 * ttl) + MILLI;
    }
    let boundary = match random.below(8) {
        0 => ttl / 10,
        1 => ttl / 3,
        2 => ttl * 2 / 3,
        3 => ttl - ttl / 10,
        4 => ttl,
        5 => ttl + ttl / 10,
        6 => ttl * 3 / 2,
        _ => ttl * 5 / 2,
    };
    let near = ttl / 20;
    (boundary + random.below(2 * near)).saturating_sub(near).max(MILLI)
}

fn draw_fault(random: &mut Random, nodes: usize, leases: usize, ttl: u64, aimed: bool) -> Fault {
    let lease = random.below(leases as u64) as usize;
    let node = random.below(nodes as u64) as usize;
    let target = if random.below(3) > 0 { Target::Holder(lease) } else { Target::Node(node) };
    let span = draw_span(random, ttl, aimed);
    match random.below(35) {
        0..=3 => Fault::Crash(target, (random.below(5) > 0).then_some(span)),
        4..=7 => Fault::Pause(target, span),
        8..=10 => Fault::Isolate(target, span),
        11..=12 => Fault::Deafen(target, span),
        13 => Fault::Outage(span),
        14..=17 => Fault::Storm(span),
        18..=19 => Fault::Evict(target),
        20..=21 => Fault::Resign(lease),
        22 => Fault::Transfer(lease, node),
        23 => Fault::AskToResign(lease),
        24..=25 => Fault::Leave(target, span),
        26..=27 => Fault::WorkEnds(lease),
        28..=29 => Fault::Withdraw(target, lease, span),
        31..=33 => Fault::StaleReads(span, (random.below(2) == 0).then(|| random.below(ttl))),
        30 => Fault::WallJump(target, random.below(7_200_000) as i64 - 3_600_000),
        _ => Fault::StoreClockJump(random.below(200 * ttl) as i64 - (100 * ttl) as i64),
    }
}

fn draw_loss(random: &mut Random, ttl: u64, leases_alone: bool) -> Fault {
    // Where a store goes back to before a lease was taken, and not to before its holder's last beat,
    // nobody can tell whether that one still leads; so it goes back by more than a beat.
    let back = (random.below(2) == 0).then(|| ttl / 2 + random.below(4 * ttl));
    match random.below(4) {
        0 => Fault::Forget(Extent::Members, back),
        1 if leases_alone => Fault::Forget(Extent::Leases, None),
        _ => Fault::Forget(Extent::Everything, back),
    }
}

fn nanos(span: Duration) -> u64 {
    span.as_nanos() as u64
}
