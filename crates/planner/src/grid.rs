//! The grid: what a user's own strategy sees and changes.

use std::collections::BTreeSet;
use std::fmt;

use crate::effort::Effort;
use crate::index::{Column, DutyAt, NodeAt};
use crate::layout::Layout;
use crate::preference::Rank;
use crate::problem::Problem;
use crate::refusal::Refusal;
use crate::situation::{PlanDuty, PlanNode};

/// Nodes with what they can run, and duties with where they are.
///
/// Indexes are those of the [situation](crate::Situation). No rule can be broken through the
/// grid: what would is refused and changes nothing. What a strategy asks for beyond the limits of
/// [`Rebalance`](crate::Rebalance) is done in later rounds.
pub struct Grid<'p, 'a> {
    pub(crate) layout: Layout<'p, 'a>,
    pub(crate) detached: BTreeSet<DutyAt>,
    /// How much work is left to do here. What is asked for duty by duty is always done.
    pub(crate) effort: Effort,
    /// The family that the strategy is for; all that have none of their own if absent.
    family: Option<&'a str>,
    nodes: Vec<NodeAt>,
    duties: Vec<DutyAt>,
    /// The strategy's duties that aren't paused.
    scope: Vec<DutyAt>,
}

impl fmt::Debug for Grid<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placed = |duty: &DutyAt| {
            let about = self.problem().duty(*duty);
            let given = self.problem().duties[*duty].given;
            (&about.family, &about.name, self.place_of(given))
        };
        f.debug_list().entries(self.scope().iter().map(placed)).finish()
    }
}

impl<'p, 'a> Grid<'p, 'a> {
    pub(crate) fn new(layout: Layout<'p, 'a>, family: Option<&'a str>, effort: Effort) -> Self {
        let problem = layout.problem;
        let nodes = by_given(&problem.nodes, |facts| facts.given);
        let duties = by_given(&problem.duties, |facts| facts.given);
        let scope = Vec::new();
        let mut grid =
            Self { layout, detached: BTreeSet::new(), effort, family, nodes, duties, scope };
        let mine = |duty: &DutyAt| {
            let duty = problem.duty(*duty);
            !duty.paused && grid.is_mine(duty)
        };
        grid.scope = problem.duties.keys().filter(mine).collect();
        grid
    }

    /// All nodes, in order of their ids.
    pub fn nodes(&self) -> impl Iterator<Item = (usize, &'a PlanNode)> + use<'p, 'a> {
        let problem = self.problem();
        problem.nodes.keys().map(|node| (problem.nodes[node].given, problem.node(node)))
    }

    /// The strategy's duties that aren't paused, in order of family and name, each with its node.
    #[must_use]
    pub fn duties(&self) -> Vec<(usize, &'a PlanDuty, Option<usize>)> {
        let problem = self.problem();
        let row = |duty: DutyAt| {
            let given = problem.duties[duty].given;
            (given, problem.duty(duty), self.place_of(given))
        };
        self.scope.iter().copied().map(row).collect()
    }

    /// The node of a duty.
    #[must_use]
    pub fn place_of(&self, duty: usize) -> Option<usize> {
        let node = self.layout.target(*self.duties.get(duty)?)?;
        Some(self.problem().nodes[node].given)
    }

    /// What a node carries: the weights of all its duties, of whatever family, and its load.
    #[must_use]
    pub fn carries(&self, node: usize) -> u128 {
        self.nodes.get(node).map_or(0, |node| self.layout.bulk(*node))
    }

    /// Whether a duty may go to a node.
    ///
    /// # Errors
    /// Says what is in the way.
    pub fn check(&self, duty: usize, node: usize) -> Result<(), Refusal> {
        let duty = self.known(duty)?;
        let node = *self.nodes.get(node).ok_or(Refusal::UnknownNode)?;
        if self.layout.target(duty) == Some(node) {
            return Ok(());
        }
        self.layout.verdict(duty, node).map_or(Ok(()), |rule| Err(Refusal::Rule(rule)))
    }

    /// Gives a node to a duty that has none.
    ///
    /// # Errors
    /// Says what is in the way.
    pub fn assign(&mut self, duty: usize, node: usize) -> Result<(), Refusal> {
        self.known(duty)?;
        match self.place_of(duty) {
            Some(place) if place != node => Err(Refusal::Placed(place)),
            _ => self.move_to(duty, node),
        }
    }

    /// Moves a duty to a node, from wherever it is.
    ///
    /// # Errors
    /// Says what is in the way.
    pub fn move_to(&mut self, duty: usize, node: usize) -> Result<(), Refusal> {
        self.check(duty, node)?;
        let duty = self.known(duty)?;
        let node = *self.nodes.get(node).ok_or(Refusal::UnknownNode)?;
        self.detached.remove(&duty);
        if self.layout.target(duty) != Some(node) {
            self.layout.lift(duty);
            self.layout.put(duty, node);
        }
        Ok(())
    }

    /// Takes a duty from its node; it runs nowhere.
    ///
    /// # Errors
    /// Says if the duty isn't one of the strategy's.
    pub fn detach(&mut self, duty: usize) -> Result<(), Refusal> {
        let duty = self.known(duty)?;
        self.layout.lift(duty);
        self.detached.insert(duty);
        Ok(())
    }

    /// Moves a duty to the leader of the cluster.
    ///
    /// # Errors
    /// Says what is in the way.
    pub fn run_on_leader(&mut self, duty: usize) -> Result<(), Refusal> {
        let leader = self.nodes().find(|(_, node)| node.leader).ok_or(Refusal::NoLeader)?;
        self.move_to(duty, leader.0)
    }

    /// Moves a duty to the node of a name; to the least loaded of several.
    ///
    /// # Errors
    /// Says what is in the way.
    pub fn pin(&mut self, duty: usize, name: &str) -> Result<(), Refusal> {
        self.known(duty)?;
        let mut named: Vec<usize> =
            self.nodes().filter(|(_, node)| node.name == name).map(|(node, _)| node).collect();
        if self.place_of(duty).is_some_and(|place| named.contains(&place)) {
            return Ok(());
        }
        named.sort_by_key(|node| self.carries(*node));
        let mut refusal = Refusal::UnknownNode;
        for node in named {
            match self.move_to(duty, node) {
                Ok(()) => return Ok(()),
                Err(because) => refusal = because,
            }
        }
        Err(refusal)
    }

    /// The least loaded node that a duty may go to, or already is on. Nodes on which it failed
    /// come last.
    #[must_use]
    pub fn least_loaded(&self, duty: usize) -> Option<usize> {
        let at = self.known(duty).ok()?;
        let fits =
            |node: &NodeAt| self.layout.target(at) == Some(*node) || self.layout.fits(at, *node);
        let nodes = self.problem().nodes.keys().filter(fits);
        let key =
            |node: &NodeAt| (Rank::of(&self.layout, at, *node), self.layout.fill(*node), *node);
        Some(self.problem().nodes[nodes.min_by_key(key)?].given)
    }

    /// Gives every node the same weight of a family, as far as rules allow, by as few moves as
    /// needed. Other families don't count.
    pub fn distribute_evenly(&mut self, family: &str) {
        let members = self.of_family(family);
        self.even_out(&members);
    }

    /// The same for each version of a family by itself, over the nodes that can run it.
    pub fn distribute_evenly_blue_green(&mut self, family: &str) {
        let mut members = self.of_family(family);
        let problem = self.problem();
        while let Some(first) = members.first() {
            let version = &problem.duty(*first).version;
            let same = |duty: &DutyAt| problem.duty(*duty).version == *version;
            let (these, others): (Vec<DutyAt>, Vec<DutyAt>) = members.into_iter().partition(same);
            self.even_out(&these);
            members = others;
        }
    }

    pub(crate) fn problem(&self) -> &'p Problem<'a> {
        self.layout.problem
    }

    /// The strategy's duties that aren't paused.
    pub(crate) fn scope(&self) -> &[DutyAt] {
        &self.scope
    }

    fn of_family(&self, family: &str) -> Vec<DutyAt> {
        let problem = self.problem();
        let Some(family) = problem.family(family) else { return Vec::new() };
        let member =
            |duty: &DutyAt| problem.class(*duty).family == family && !self.detached.contains(duty);
        self.scope.iter().copied().filter(member).collect()
    }

    /// Whether the strategy places this duty: its own family, or all that have none of their own.
    fn is_mine(&self, duty: &PlanDuty) -> bool {
        let own = &self.problem().situation.policy.families;
        self.family.map_or_else(|| !own.contains_key(&duty.family), |family| family == duty.family)
    }

    fn known(&self, duty: usize) -> Result<DutyAt, Refusal> {
        let at = *self.duties.get(duty).ok_or(Refusal::UnknownDuty)?;
        let duty = self.problem().duty(at);
        if !self.is_mine(duty) {
            return Err(Refusal::UnknownDuty);
        }
        if duty.paused { Err(Refusal::Paused) } else { Ok(at) }
    }
}

/// Where each index of the situation went.
fn by_given<K: crate::index::At, T>(column: &Column<K, T>, given: impl Fn(&T) -> usize) -> Vec<K> {
    let mut places: Vec<(usize, K)> = column.iter().map(|(at, facts)| (given(facts), at)).collect();
    places.sort_by_key(|(given, _)| *given);
    places.into_iter().map(|(_, at)| at).collect()
}
