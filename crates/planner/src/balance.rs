//! Evens out what nodes carry, by moves of single duties from nodes that carry more.
//!
//! A duty moves only if the sum of squares of what the two nodes carry (over their shares)
//! becomes smaller. So it ends, a node that joins gets no more than its share, and where nothing
//! can be gained nothing moves. Neither rules nor preferences are given up for it.
//!
//! A duty that runs moves only if even the heaviest of its node would make things more even. So
//! duties of different weights don't move for crumbs, and after a leave none moves but those
//! that ran there: each went to the least loaded node, which makes no difference above its weight.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::draft::Draft;
use crate::index::{ClassAt, DutyAt, NodeAt};
use crate::layout::Layout;
use crate::mutant::PlanMutant;
use crate::outcome::Why;
use crate::preference::Rank;

/// More passes than any cluster needs; what is left waits for the next plan.
const PASSES: usize = 32;

/// Evens out what nodes carry. Returns whether anything moved.
pub(crate) fn balance(draft: &mut Draft<'_, '_>) -> bool {
    let roomy = draft.layout.roomy().into_iter();
    let takers = roomy.map(|node| (draft.layout.fill(node), node)).collect();
    let mut balancer = Balancer { draft, takers };
    let mut any = false;
    for _ in 0..PASSES {
        if !balancer.pass() {
            return any;
        }
        any = true;
    }
    balancer.draft.wants_more = true;
    any
}

struct Balancer<'d, 'p, 'a> {
    draft: &'d mut Draft<'p, 'a>,
    /// The nodes that take more, least loaded first.
    takers: BTreeSet<(u128, NodeAt)>,
}

/// After so many duties of one class and weight the best one so far will do.
const TRIES: usize = 8;

/// A move that makes two nodes more even. The least is the best.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Gain {
    /// How loaded the node is that takes.
    fill: u128,
    /// How far the weight is from making the two nodes equal.
    off: u128,
    /// How many more of the family the giver has.
    excess: Reverse<i64>,
    taker: NodeAt,
    duty: DutyAt,
}

impl Balancer<'_, '_, '_> {
    /// Lets nodes give, always the most loaded of those that still can: then no node gives more
    /// than it must. Returns whether anything moved.
    fn pass(&mut self) -> bool {
        let mut offers: BTreeMap<NodeAt, Offers> = BTreeMap::new();
        let mut any = false;
        let problem = self.draft.layout.problem;
        let open = problem.nodes.iter().filter(|(_, facts)| facts.open);
        let mut givers: BTreeSet<(u128, NodeAt)> =
            open.map(|(node, _)| (self.draft.layout.fill(node), node)).collect();
        // Every move makes something better for good, so this is only a guard.
        for _ in 0..4 * (problem.duties.len() + problem.nodes.len()) {
            let Some((fill, giver)) = givers.pop_last() else { break };
            if self.draft.effort.is_spent() {
                self.draft.cut_short = true;
                return false;
            }
            let Some(&(least, _)) = self.takers.first() else { break };
            if problem.equal_shares && fill < least + self.margin() {
                break;
            }
            let offer = offers.entry(giver).or_insert_with(|| Offers::of(self.draft, giver));
            let Some(Gain { taker, duty, .. }) = self.best_of(giver, offer) else { continue };
            offer.remove(self.draft, duty);
            offers.remove(&taker);
            let before = (self.draft.layout.fill(taker), taker);
            self.takers.remove(&(fill, giver));
            self.takers.remove(&before);
            self.draft.relocate(duty, giver, taker, Why::Balance);
            let after = [giver, taker].map(|node| (self.draft.layout.fill(node), node));
            let layout = &self.draft.layout;
            self.takers.extend(after.into_iter().filter(|(_, node)| !layout.is_full(*node)));
            givers.remove(&before);
            givers.extend(after);
            any = true;
        }
        any
    }

    /// The least difference between two nodes at which something can move.
    fn margin(&self) -> u128 {
        if self.draft.layout.problem.planted.is(PlanMutant::MovesForNothing) { 1 } else { 2 }
    }

    /// The best move of a node: first of those duties that move anyway.
    fn best_of(&mut self, giver: NodeAt, offers: &Offers) -> Option<Gain> {
        self.best(giver, &offers.moving, 1).or_else(|| {
            let heaviest = offers.weights.keys().next_back().copied().unwrap_or(1);
            self.best(giver, &offers.settled, heaviest)
        })
    }

    /// The best move among the duties that a node offers.
    fn best(&mut self, giver: NodeAt, offers: &Offer, heaviest: u64) -> Option<Gain> {
        let mut best: Option<Gain> = None;
        let mut consider = |gain: Option<Gain>| {
            if gain.as_ref().is_some_and(|gain| best.as_ref().is_none_or(|best| gain < best)) {
                best = gain;
            }
        };
        for weights in offers.plain.values() {
            consider(self.gain(giver, weights, heaviest));
        }
        let least = self.takers.first().map(|(fill, _)| *fill);
        for ((_, weight), duties) in &offers.special {
            let mut found = 0;
            for duty in duties {
                let gain = self.gain(giver, &BTreeMap::from([(*weight, vec![*duty])]), heaviest);
                found += usize::from(gain.is_some());
                let enough = found >= TRIES || gain.as_ref().map(|gain| gain.fill) == least;
                consider(gain);
                if enough {
                    break;
                }
            }
        }
        best
    }

    /// The best move among duties that differ in weight alone.
    fn gain(&mut self, giver: NodeAt, weights: &Weights, heaviest: u64) -> Option<Gain> {
        let sample = weights.values().next()?.last()?;
        let layout = &self.draft.layout;
        let problem = layout.problem;
        let class = problem.class(*sample);
        let (giver_fill, giver_rank) = (layout.fill(giver), Rank::of(layout, *sample, giver));
        for &(fill, taker) in &self.takers {
            self.draft.effort.spend(1);
            if fill >= giver_fill {
                break;
            }
            if problem.equal_shares && fill + self.margin() > giver_fill {
                break;
            }
            // Where it failed, or would become another version, it doesn't go for evenness.
            let unwanted = problem.duties[*sample].avoids(taker);
            if taker == giver || unwanted || !class.is_able(taker) {
                continue;
            }
            let nearer = layout.same_zone(class, giver, taker)
                || layout.zone(class, taker) < layout.zone(class, giver);
            if !nearer || Rank::of(layout, *sample, taker) > giver_rank {
                continue;
            }
            let Some((off, duty)) = fitting(layout, (giver, taker), weights, heaviest) else {
                continue;
            };
            if !self.draft.budget.allows(problem, duty, giver, taker) {
                self.draft.wants_more = true;
                if self.draft.budget.is_spent(giver) {
                    return None;
                }
                continue;
            }
            let count = |node| i64::from(layout.family(class.family, node));
            let excess = Reverse(count(giver) - count(taker));
            return Some(Gain { fill, off, excess, taker, duty });
        }
        None
    }
}

/// Duties that differ in weight alone, by weight.
type Weights = BTreeMap<u64, Vec<DutyAt>>;

/// Among the weights that make two nodes more even, the one that does so best and fits. Nothing
/// if the heaviest of the node wouldn't do so.
fn fitting(
    layout: &Layout<'_, '_>,
    (giver, taker): (NodeAt, NodeAt),
    weights: &Weights,
    heaviest: u64,
) -> Option<(u128, DutyAt)> {
    let nodes = &layout.problem.nodes;
    let (gives, takes) = (u128::from(nodes[giver].share), u128::from(nodes[taker].share));
    let distance = (layout.bulk(giver) * takes).checked_sub(layout.bulk(taker) * gives)?;
    let shares = gives + takes;
    let planted = layout.problem.planted.is(PlanMutant::MovesForNothing);
    let helps = |bulk: u128, duty: DutyAt| {
        let settled = layout.problem.running[duty] == Some(giver);
        bulk * shares < 2 * distance || planted && settled && bulk * shares == 2 * distance
    };
    if !planted && u128::from(heaviest.max(1)) * shares >= 2 * distance {
        return None;
    }
    let half = u64::try_from(distance / shares).unwrap_or(u64::MAX);
    let left = u64::try_from(layout.left(taker)).unwrap_or(u64::MAX);
    let below = weights.range(..=half.min(left)).next_back();
    let above = if half < left { weights.range(half + 1..=left).next() } else { None };
    let candidates = [below, above].into_iter().flatten().filter_map(|(weight, duties)| {
        let bulk = u128::from((*weight).max(1));
        let duty = *duties.last()?;
        (helps(bulk, duty) && layout.verdict(duty, taker).is_none())
            .then_some(((bulk * shares).abs_diff(distance), duty))
    });
    candidates.min()
}

/// The duties that a node may give.
#[derive(Default)]
struct Offers {
    /// Those that move anyway: another node costs them nothing.
    moving: Offer,
    settled: Offer,
    /// How many duties of each weight the node has.
    weights: BTreeMap<u64, usize>,
}

#[derive(Default)]
struct Offer {
    plain: BTreeMap<ClassAt, Weights>,
    special: BTreeMap<(ClassAt, u64), BTreeSet<DutyAt>>,
}

impl Offers {
    fn of(draft: &Draft<'_, '_>, giver: NodeAt) -> Self {
        let problem = draft.layout.problem;
        let mut offers = Self::default();
        for &duty in draft.layout.held(giver) {
            let facts = &problem.duties[duty];
            *offers.weights.entry(facts.weight).or_default() += 1;
            let settled = problem.running[duty] == Some(giver);
            if draft.fixed[duty] || !settled && problem.planted.is(PlanMutant::AllToOne) {
                continue;
            }
            let offer = if settled { &mut offers.settled } else { &mut offers.moving };
            if facts.is_plain() {
                let weights = offer.plain.entry(facts.class).or_default();
                weights.entry(facts.weight).or_default().push(duty);
            } else {
                let kind = (facts.class, facts.weight);
                offer.special.entry(kind).or_default().insert(duty);
            }
        }
        offers
    }

    /// Takes back a duty that was the last of its kind, before it moves.
    fn remove(&mut self, draft: &Draft<'_, '_>, duty: DutyAt) {
        let facts = &draft.layout.problem.duties[duty];
        let settled = draft.layout.problem.running[duty] == draft.layout.target(duty);
        let offer = if settled { &mut self.settled } else { &mut self.moving };
        let weight = facts.weight;
        if let Some(count) = self.weights.get_mut(&weight) {
            *count -= 1;
            if *count == 0 {
                self.weights.remove(&weight);
            }
        }
        if !facts.is_plain() {
            if let Some(duties) = offer.special.get_mut(&(facts.class, weight)) {
                duties.remove(&duty);
            }
            return;
        }
        let Some(weights) = offer.plain.get_mut(&facts.class) else { return };
        let Some(duties) = weights.get_mut(&weight) else { return };
        duties.pop();
        if duties.is_empty() {
            weights.remove(&weight);
        }
    }
}
