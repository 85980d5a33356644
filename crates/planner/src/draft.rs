//! A plan in the making.

use crate::budget::Budget;
use crate::effort::Effort;
use crate::index::{At, Column, DutyAt, NodeAt};
use crate::layout::{Layout, Places};
use crate::mutant::PlanMutant;
use crate::outcome::Why;
use crate::preference::Rank;
use crate::problem::Problem;
use crate::situation::Pin;
use crate::staying::Staying;

/// A plan in the making: who is where, and who is where no longer.
pub(crate) struct Draft<'p, 'a> {
    pub(crate) layout: Layout<'p, 'a>,
    pub(crate) budget: Budget,
    /// How much work is left to do.
    pub(crate) effort: Effort,
    /// Why each duty left where it runs.
    pub(crate) why: Column<DutyAt, Why>,
    /// Duties that have no node, or should leave theirs at once; and some that no longer do.
    pub(crate) homeless: Vec<DutyAt>,
    /// Duties that balancing leaves alone: a strategy of their own placed them.
    pub(crate) fixed: Column<DutyAt, bool>,
    /// Duties that a strategy wants nowhere.
    pub(crate) detached: Column<DutyAt, bool>,
    /// Whether something would move if more were allowed to.
    pub(crate) wants_more: bool,
    /// Whether something wasn't looked for because that took too much work.
    pub(crate) cut_short: bool,
}

impl<'p, 'a> Draft<'p, 'a> {
    /// What runs and may go on running stays; the rest is homeless.
    pub(crate) fn new(problem: &'p Problem<'a>, effort: Effort) -> Self {
        let why = Column::filled(problem.duties.len(), Why::Homeless);
        let staying = Staying { places: Places::new(problem), why, homeless: Vec::new() };
        let mut draft = Self::from_staying(problem, effort, staying);
        if !poisoned(problem) {
            draft.keep_all(problem.duties.keys());
        }
        draft
    }

    /// Goes on from what is known to stay.
    pub(crate) fn from_staying(problem: &'p Problem<'a>, effort: Effort, staying: Staying) -> Self {
        let Staying { places, why, homeless } = staying;
        Self {
            layout: Layout { problem, places },
            budget: Budget::new(problem),
            effort,
            why,
            homeless,
            fixed: Column::filled(problem.duties.len(), false),
            detached: Column::filled(problem.duties.len(), false),
            wants_more: false,
            cut_short: false,
        }
    }

    /// What stays, before anything moved.
    pub(crate) fn staying(self) -> Staying {
        Staying { places: self.layout.places, why: self.why, homeless: self.homeless }
    }

    /// Keeps those of the duties, given in order, that may stay where they run. Where not all may,
    /// those go first that may be nowhere else.
    pub(crate) fn keep_all(&mut self, duties: impl Iterator<Item = DutyAt> + Clone) {
        let problem = self.layout.problem;
        let required = |duty: &DutyAt| problem.duties[*duty].is_required();
        duties.clone().filter(required).for_each(|duty| self.keep(duty));
        duties.filter(|duty| !required(duty)).for_each(|duty| self.keep(duty));
    }

    fn keep(&mut self, duty: DutyAt) {
        let problem = self.layout.problem;
        let facts = &problem.duties[duty];
        if facts.paused && !problem.planted.is(PlanMutant::PausedStarts) {
            self.why[duty] = Why::Stopped;
            return;
        }
        let Some(node) = problem.running[duty].filter(|_| !self.is_torn_away(duty)) else {
            self.homeless.push(duty);
            return;
        };
        if let Some(rule) = self.layout.verdict_on_staying(duty, node) {
            self.why[duty] = Why::Ruled(rule);
            self.homeless.push(duty);
            return;
        }
        self.layout.put(duty, node);
        let rank = Rank::of(&self.layout, duty, node);
        if rank.urgency() > 0 {
            self.why[duty] = if rank.is_drained() { Why::Drained } else { Why::Failed };
            self.homeless.push(duty);
        }
    }

    /// Whether a duty has no node and should have one, or should leave its own at once.
    pub(crate) fn needs_home(&self, duty: DutyAt) -> bool {
        let node = self.layout.target(duty);
        let urgent = |node| Rank::of(&self.layout, duty, node).urgency() > 0;
        !self.detached[duty] && node.is_none_or(urgent)
    }

    /// A planted mistake: a node that joins makes half of everything move.
    fn is_torn_away(&self, duty: DutyAt) -> bool {
        let problem = self.layout.problem;
        let joined = || {
            let runs = |node| problem.running.iter().any(|(_, running)| *running == Some(node));
            !problem.nodes.keys().all(runs)
        };
        problem.planted.is(PlanMutant::MovesTooMuch) && duty.index() % 2 == 1 && joined()
    }

    /// Moves a duty between nodes, if the budget allows. The caller has asked for the rules.
    pub(crate) fn relocate(&mut self, duty: DutyAt, from: NodeAt, to: NodeAt, why: Why) -> bool {
        let problem = self.layout.problem;
        if !self.budget.allows(problem, duty, from, to) {
            self.wants_more = true;
            return false;
        }
        self.budget.pay(problem, duty, from, to);
        if problem.running[duty] == Some(from) {
            self.why[duty] = why;
        }
        self.layout.lift(duty);
        self.layout.put(duty, to);
        true
    }
}

/// A planted mistake: one pin to an unknown node stops everything.
fn poisoned(problem: &Problem<'_>) -> bool {
    let unknown = |duty: DutyAt| {
        let named = matches!(problem.duty(duty).pin, Some(Pin::Required(_) | Pin::Preferred(_)));
        named && problem.pinned(duty).is_some_and(|(_, nodes)| nodes.is_empty())
    };
    problem.planted.is(PlanMutant::UnknownPinPoisons) && problem.duties.keys().any(unknown)
}
