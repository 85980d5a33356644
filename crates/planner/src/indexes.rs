//! What is known about a situation and what of it may stay, kept from one plan to the next and
//! brought up to date where something changed.

use crate::class::Zones;
use crate::draft::Draft;
use crate::facts::{DutyFacts, Facts, Reading, duty_key, node_facts, places};
use crate::index::{At, Column, DutyAt, NodeAt};
use crate::mutant::{PlanMutant, PlantedInPlan};
use crate::outcome::Plan;
use crate::planning::{complete, enough};
use crate::problem::Problem;
use crate::renumbering::Renumbering;
use crate::situation::Situation;
use crate::staying::Staying;

/// What is known of something in the situation: where it was in canonical order when it was last read, if
/// it was, and whether it changed since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastRead<K> {
    pub(crate) was: Option<K>,
    pub(crate) changed: bool,
}

impl<K> LastRead<K> {
    /// Nothing is known.
    pub(crate) const NEW: Self = Self { was: None, changed: true };
}

/// What is known of each node and duty of the situation.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanChanges {
    pub(crate) nodes: Vec<LastRead<NodeAt>>,
    pub(crate) duties: Vec<LastRead<DutyAt>>,
    /// Whether any node came, left or changed, and whether any duty did.
    pub(crate) of_nodes: bool,
    pub(crate) of_duties: bool,
}

/// What is known about a situation, and what of it may stay.
pub(crate) struct Indexes {
    facts: Facts,
    staying: Staying,
    /// How many names there were when all was read.
    names: usize,
}

/// A duty that is read again: its index in the situation, what it was, and what it is now.
struct Change {
    given: usize,
    was: Option<DutyAt>,
    facts: DutyFacts,
    running: Option<NodeAt>,
}

impl Indexes {
    /// Reads everything.
    pub(crate) fn new(
        situation: &Situation,
        changes: &mut PlanChanges,
        planted: PlantedInPlan,
    ) -> Self {
        let facts = Facts::new(situation, planted);
        let staying = Staying::new(&Problem::new(situation, &facts));
        let names = facts.names();
        let indexes = Self { facts, staying, names };
        changes.nodes = vec![LastRead::NEW; situation.nodes.len()];
        changes.duties = vec![LastRead::NEW; situation.duties.len()];
        indexes.note_nodes(changes);
        indexes.note_duties(changes);
        indexes
    }

    /// The plan for the situation that was followed last, and how much work it took.
    pub(crate) fn plan(&self, situation: &Situation) -> (Plan, u64) {
        let problem = Problem::new(situation, &self.facts);
        complete(Draft::from_staying(&problem, enough(&problem), self.staying.clone()))
    }

    /// Takes in what changed. Returns nothing where reading everything is simpler.
    pub(crate) fn follow(
        mut self,
        situation: &Situation,
        changes: &mut PlanChanges,
    ) -> Option<Self> {
        let worn = self.facts.names() > 2 * self.names + 1_000;
        let many = changes.duties.iter().filter(|known| known.changed).count();
        if worn
            || many > situation.duties.len() / 4
            || self.facts.differ_from(&situation.policy.strategy)
        {
            return None;
        }
        let mut dirty = self.vacate(changes);
        let mut lost = Vec::new();
        if changes.of_nodes {
            lost = self.follow_nodes(situation, changes, &mut dirty);
        }
        let mut affected = Column::filled(self.facts.duties.len(), false);
        lost.into_iter().for_each(|duty| affected[duty] = true);
        if changes.of_duties {
            affected = self.follow_duties(situation, changes, &mut dirty, affected);
        }
        for (duty, node) in self.facts.running.iter() {
            affected[duty] |= node.is_some_and(|node| dirty[node]);
        }
        let problem = Problem::new(situation, &self.facts);
        let staying = self.staying.review(&problem, &affected);
        Some(Self { staying, ..self })
    }

    /// Takes all duties from nodes that left or changed, or of which a duty left or changed. Returns which
    /// these are.
    fn vacate(&mut self, changes: &PlanChanges) -> Column<NodeAt, bool> {
        let mut dirty = Column::filled(self.facts.nodes.len(), changes.of_nodes);
        for known in changes.nodes.iter().filter(|known| !known.changed) {
            known.was.into_iter().for_each(|node| dirty[node] = false);
        }
        if changes.of_duties {
            let mut stays = Column::filled(self.facts.duties.len(), false);
            for known in changes.duties.iter().filter(|known| !known.changed) {
                known.was.into_iter().for_each(|duty| stays[duty] = true);
            }
            for (_, node) in self.facts.running.iter().filter(|(duty, _)| !stays[*duty]) {
                node.iter().for_each(|node| dirty[*node] = true);
            }
        }
        for (node, _) in dirty.iter().filter(|(_, dirty)| **dirty) {
            self.staying.clear(&self.facts, node);
        }
        dirty
    }

    /// Numbers the nodes anew. Returns the duties whose node left.
    fn follow_nodes(
        &mut self,
        situation: &Situation,
        changes: &mut PlanChanges,
        dirty: &mut Column<NodeAt, bool>,
    ) -> Vec<DutyAt> {
        let facts = &mut self.facts;
        let before = facts.nodes.len();
        facts.nodes = node_facts(situation, facts.equal_shares, facts.planted);
        let known = |given: usize| changes.nodes.get(given).copied().unwrap_or(LastRead::NEW);
        let was = facts.nodes.iter().map(|(_, node)| known(node.given).was).collect();
        let nodes = Renumbering::new(was, before);
        let unread = facts.planted.is(PlanMutant::ChangeUnread);
        let same = facts.nodes.iter().map(|(_, node)| {
            let known = known(node.given);
            known.was.filter(|_| !known.changed || unread)
        });
        let same: Column<NodeAt, Option<NodeAt>> = same.collect();
        for (_, class) in facts.classes.iter_mut() {
            class.follow(&facts.nodes, situation, |node| same[node]);
        }
        facts.follow_names(situation);
        *dirty = nodes.column(dirty, |_| true);
        let mut lost = Vec::new();
        for (duty, running) in facts.running.iter_mut() {
            let Some(node) = *running else { continue };
            *running = nodes.now(node);
            if running.is_none() && !facts.planted.is(PlanMutant::LeaverForgotten) {
                lost.push(duty);
            }
        }
        for (_, duty) in facts.duties.iter_mut().filter(|(_, duty)| !duty.avoid.is_empty()) {
            nodes.list(&mut duty.avoid);
            duty.avoid.sort_unstable();
        }
        let problem = Problem::new(situation, facts);
        self.staying.places.follow_nodes(&problem, &nodes);
        for (node, _) in dirty.iter().filter(|(_, dirty)| **dirty) {
            self.staying.places.load(&problem, node);
        }
        self.note_nodes(changes);
        lost
    }

    /// Reads those duties again that came or changed, and numbers all anew if need be. Returns which are to
    /// be looked at: these, and those that were to be before.
    fn follow_duties(
        &mut self,
        situation: &Situation,
        changes: &mut PlanChanges,
        dirty: &mut Column<NodeAt, bool>,
        affected: Column<DutyAt, bool>,
    ) -> Column<DutyAt, bool> {
        for (given, known) in changes.duties.iter().enumerate() {
            if let Some(at) = known.was {
                self.facts.duties[at].given = given;
            }
        }
        let mut news = self.read(situation, changes);
        let mut affected = affected;
        if self.is_in_order(situation, changes, &news) {
            for change in &mut news {
                let Some(at) = change.was else { continue };
                self.facts.duties[at] = change.facts.clone();
                self.facts.running[at] = change.running;
                affected[at] = true;
            }
        } else {
            affected = self.renumber(situation, changes, &news, &affected);
        }
        self.note_duties(changes);
        self.facts.weigh();
        self.staying.places.widen(&self.facts);
        // Where they go, what is there is looked at again with them: in its order.
        for node in news.iter().filter_map(|change| change.running) {
            dirty[node] = true;
            self.staying.clear(&self.facts, node);
        }
        affected
    }

    /// Those duties that came or changed.
    fn read(&mut self, situation: &Situation, changes: &PlanChanges) -> Vec<Change> {
        let places = places(&self.facts.nodes);
        let mut reading = Reading { situation, places, last: None };
        let mut news = Vec::new();
        for (given, known) in changes.duties.iter().enumerate().filter(|(_, it)| it.changed) {
            if let Some((facts, running)) = self.facts.read(&mut reading, given) {
                news.push(Change { given, was: known.was, facts, running });
            }
        }
        news
    }

    /// Whether all duties are where they were in canonical order: none came, none left, and none that
    /// changed belongs elsewhere.
    fn is_in_order(&self, situation: &Situation, changes: &PlanChanges, news: &[Change]) -> bool {
        let duties = &self.facts.duties;
        let stays = changes.duties.len() == duties.len();
        let key = |index: usize| {
            (index < duties.len()).then(|| duty_key(situation, duties[DutyAt::at(index)].given))
        };
        let in_order = |change: &Change| {
            let Some(at) = change.was.map(At::index) else { return false };
            let before = at.checked_sub(1).and_then(key);
            let (here, after) = (key(at), key(at + 1));
            before.is_none_or(|before| Some(before) < here)
                && after.is_none_or(|it| here < Some(it))
        };
        stays && news.iter().all(in_order)
    }

    fn renumber(
        &mut self,
        situation: &Situation,
        changes: &PlanChanges,
        news: &[Change],
        affected: &Column<DutyAt, bool>,
    ) -> Column<DutyAt, bool> {
        let facts = &mut self.facts;
        let mut there = Column::filled(facts.duties.len(), false);
        for known in changes.duties.iter().filter(|known| !known.changed) {
            known.was.into_iter().for_each(|duty| there[duty] = true);
        }
        let key = |given: usize| duty_key(situation, given);
        let stays: Vec<DutyAt> = facts.duties.keys().filter(|duty| there[*duty]).collect();
        let mut order: Vec<&Change> = news.iter().collect();
        order.sort_by_key(|change| key(change.given));
        // What each is: one that stays, or one that was read.
        let mut merged: Vec<Result<DutyAt, &Change>> =
            Vec::with_capacity(stays.len() + order.len());
        let mut rest = stays.as_slice();
        for change in order {
            let here = key(change.given);
            let earlier = rest.partition_point(|duty| key(facts.duties[*duty].given) < here);
            let (before, after) = rest.split_at_checked(earlier).unwrap_or((rest, &[]));
            merged.extend(before.iter().map(|duty| Ok(*duty)));
            merged.push(Err(change));
            rest = after;
        }
        merged.extend(rest.iter().map(|duty| Ok(*duty)));
        let was = |it: &Result<DutyAt, &Change>| it.map_or_else(|change| change.was, Some);
        let duties = Renumbering::new(merged.iter().map(was).collect(), facts.duties.len());
        let read = |it: &Result<DutyAt, &Change>| match it {
            Ok(duty) => (facts.duties[*duty].clone(), facts.running[*duty], affected[*duty]),
            Err(change) => (change.facts.clone(), change.running, true),
        };
        let mut columns = (Vec::new(), Vec::new(), Vec::new());
        for (about, running, affected) in merged.iter().map(read) {
            columns.0.push(about);
            columns.1.push(running);
            columns.2.push(affected);
        }
        facts.duties = columns.0.into();
        facts.running = columns.1.into();
        self.staying.follow_duties(&duties);
        columns.2.into()
    }

    /// Notes where each node is now.
    fn note_nodes(&self, changes: &mut PlanChanges) {
        for (at, facts) in self.facts.nodes.iter() {
            if let Some(known) = changes.nodes.get_mut(facts.given) {
                *known = LastRead { was: Some(at), changed: false };
            }
        }
        changes.of_nodes = false;
    }

    /// Notes where each duty is now.
    fn note_duties(&self, changes: &mut PlanChanges) {
        for (at, facts) in self.facts.duties.iter() {
            if let Some(known) = changes.duties.get_mut(facts.given) {
                *known = LastRead { was: Some(at), changed: false };
            }
        }
        changes.of_duties = false;
    }
}

impl Facts {
    /// Finds again which nodes have the names that duties are pinned to, and are in which zones.
    fn follow_names(&mut self, situation: &Situation) {
        for (_, nodes) in self.pins.iter_mut() {
            nodes.clear();
        }
        for (at, facts) in self.nodes.iter() {
            let name = situation.nodes.get(facts.given).map(|node| node.name.as_str());
            if let Some(pin) = name.and_then(|name| self.pin_named(name)) {
                self.pins[pin].push(at);
            }
        }
        for (spread, label) in self.spread_labels() {
            self.spreads[spread] = Zones::by_label(&self.nodes, situation, &label);
        }
    }
}
