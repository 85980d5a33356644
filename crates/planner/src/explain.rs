//! Why a duty runs where it runs.

use std::fmt;

use crate::facts::Facts;
use crate::index::{DutyAt, NodeAt};
use crate::layout::Layout;
use crate::mutant::PlantedInPlan;
use crate::outcome::{Plan, Reason, Why};
use crate::preference::Rank;
use crate::problem::Problem;
use crate::rule::Rule;
use crate::situation::Situation;

/// Why a duty runs where it runs, and why on no other node. Displayed, it is a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanExplanation {
    /// The family of the duty.
    pub family: String,
    /// Its name.
    pub name: String,
    /// Where it runs, and why there.
    pub place: Whereabouts,
    /// Why it isn't on each other node.
    pub others: Vec<Other>,
}

/// Where a duty runs, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// It stays on the node of this name.
    Stays(String),
    /// It comes to the node of this name.
    Comes(String, Why),
    /// It runs nowhere.
    Nowhere(Reason),
}

/// A node that a duty isn't on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The name of the node.
    pub node: String,
    /// Why the duty isn't there.
    pub because: Because,
}

/// Why a duty isn't on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// A rule keeps it off.
    Ruled(Rule),
    /// It failed there.
    Failed,
    /// Another node is preferred: by a pin, away from the leader, or in another zone.
    LessPreferred,
    /// It would fit, but nothing would become more even.
    NoGain {
        /// What the node carries.
        carries: u128,
        /// What the duty's own node carries besides the duty.
        here: u128,
    },
    /// It would be better there, and isn't moved yet: rebalancing is off or at its limit, or the
    /// strategy wants it so.
    NotYet,
}

/// Explains where a plan puts a duty. Returns nothing for a duty that doesn't exist.
#[must_use]
pub fn explain(situation: &Situation, plan: &Plan, duty: usize) -> Option<PlanExplanation> {
    let asked = situation.duties.get(duty)?;
    let facts = Facts::new(situation, PlantedInPlan::default());
    let problem = Problem::new(situation, &facts);
    let at = problem.duties.iter().find(|(_, facts)| facts.given == duty)?.0;
    let layout = layout_without(&problem, plan, at);
    let target = plan.target.get(duty).copied().flatten();
    let here = problem.nodes.iter().find(|(_, facts)| Some(facts.given) == target);
    let moved = plan.moves.iter().find(|step| step.duty == duty);
    let unplaced = plan.unplaced.iter().find(|unplaced| unplaced.duty == duty);
    let place = match (here, moved) {
        (Some((node, _)), Some(step)) => {
            Whereabouts::Comes(problem.node(node).name.clone(), step.why)
        }
        (Some((node, _)), None) => Whereabouts::Stays(problem.node(node).name.clone()),
        (None, _) => Whereabouts::Nowhere(unplaced.map_or(Reason::NoNodes, |it| it.reason.clone())),
    };
    let here = here.map(|(node, _)| node);
    let other = |node: NodeAt| Other {
        node: problem.node(node).name.clone(),
        because: because(&layout, at, here, node),
    };
    let others = problem.nodes.keys().filter(|node| Some(*node) != here).map(other).collect();
    Some(PlanExplanation { family: asked.family.clone(), name: asked.name.clone(), place, others })
}

/// Everything where the plan puts it, except one duty.
fn layout_without<'p, 'a>(problem: &'p Problem<'a>, plan: &Plan, duty: DutyAt) -> Layout<'p, 'a> {
    let mut places = vec![None; problem.nodes.len()];
    for (node, facts) in problem.nodes.iter() {
        if let Some(place) = places.get_mut(facts.given) {
            *place = Some(node);
        }
    }
    let mut layout = Layout::new(problem);
    for (other, facts) in problem.duties.iter().filter(|(other, _)| *other != duty) {
        let target = plan.target.get(facts.given).copied().flatten();
        if let Some(node) = target.and_then(|given| places.get(given).copied().flatten()) {
            layout.put(other, node);
        }
    }
    layout
}

fn because(layout: &Layout<'_, '_>, duty: DutyAt, here: Option<NodeAt>, node: NodeAt) -> Because {
    if let Some(rule) = layout.verdict(duty, node) {
        return Because::Ruled(rule);
    }
    let class = layout.problem.class(duty);
    let rank = Rank::of(layout, duty, node);
    let Some(here) = here else {
        return if rank.urgency() > 0 { Because::Failed } else { Because::NotYet };
    };
    let mine = Rank::of(layout, duty, here);
    if rank.urgency() > mine.urgency() {
        return Because::Failed;
    }
    let crowded = layout.zone(class, node) > layout.zone(class, here);
    if rank > mine || rank == mine && crowded {
        return Because::LessPreferred;
    }
    if rank < mine || layout.fill(node) < layout.fill(here) {
        return Because::NotYet;
    }
    Because::NoGain { carries: layout.bulk(node), here: layout.bulk(here) }
}

impl fmt::Display for PlanExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, name, place, others } = self;
        match place {
            Whereabouts::Stays(node) => write!(f, "{family}/{name} stays on {node}")?,
            Whereabouts::Comes(node, why) => write!(f, "{family}/{name} comes to {node}: {why}")?,
            Whereabouts::Nowhere(reason) => write!(f, "{family}/{name} runs nowhere: {reason}")?,
        }
        others.iter().try_for_each(|other| write!(f, "\n  {} {}", other.node, other.because))
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ruled(rule) => rule.fmt(f),
            Self::Failed => f.write_str("is a node on which it failed"),
            Self::LessPreferred => f.write_str("is preferred less"),
            Self::NoGain { carries, here } => {
                write!(f, "carries {carries}, its own node {here} without it: nothing to gain")
            }
            Self::NotYet => f.write_str("would be better, and isn't moved to yet"),
        }
    }
}
