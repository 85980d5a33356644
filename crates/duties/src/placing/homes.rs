//! Where duties are, who had them before, and whom they go to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use incumbent_planner::Plan;

use super::planning::WantedRoster;
use super::{Placing, Planning};
use crate::duty::DutyId;
use crate::records::Roster;
use crate::survey::{Question, Survey};
use incumbent_core::names::MemberId;

impl Placing {
    /// The roster of a member was not written, and others of the same plan may have been: what was
    /// decided stays decided. Otherwise what was taken from one node and didn't reach the other would
    /// count as having lost its node, and go to any version.
    pub(super) fn not_written(&mut self, id: &MemberId, roster: &Roster) {
        let before = self.rosters.get(id).and_then(|stored| stored.content.as_ref());
        let is_new = |duty: &&DutyId| before.is_none_or(|before| !before.duties.contains(*duty));
        let new = roster.duties.iter().filter(is_new);
        self.on_the_way.extend(new.map(|duty| (duty.clone(), id.clone())));
    }

    /// Which duties were on their way to whom. Of a leader before this one rosters tell it.
    pub(super) fn on_the_way(&self) -> BTreeMap<DutyId, MemberId> {
        if self.was_placed {
            return self.on_the_way.clone();
        }
        let rosters = self.rosters.values().filter_map(|stored| stored.content.as_ref());
        let successors = rosters.flat_map(|roster| &roster.successors);
        successors.map(|(duty, to)| (duty.clone(), to.clone())).collect()
    }
}

impl Planning {
    /// Whether a member may not have held the lease of a duty on its roster yet.
    pub(super) fn is_unsure(&self, id: &MemberId, duty: &DutyId) -> bool {
        self.unsure.get(id).is_none_or(|unsure| unsure.contains(duty))
    }

    /// Who loses a duty to another frees its lease for that one, which knows from whom it comes.
    pub(super) fn name_successors(
        &self,
        survey: &Survey,
        question: &Question,
        plan: &Plan,
        wanted: &mut BTreeMap<&MemberId, WantedRoster>,
    ) {
        let member = |at: Option<usize>| question.members.get(at?);
        let steps = plan.moves.iter().filter_map(|step| {
            Some((question.duties.get(step.duty)?, member(step.from), member(step.to)?))
        });
        // Of what an operator asked for the planner thinks that it is there already.
        let asked = survey
            .asked_for(question, plan)
            .into_iter()
            .filter_map(|(duty, _, to)| Some((duty, survey.homes.get(duty), survey.named(to)?)));
        for (duty, from, to) in steps.chain(asked) {
            if let Some(wanted) = from.and_then(|from| wanted.get_mut(from)) {
                wanted.successors.insert(duty.clone(), to.clone());
            }
            let from = from.filter(|from| !self.is_unsure(from, duty));
            let former = self.bereft.get(duty).or(from).filter(|former| *former != to);
            if let (Some(former), Some(wanted)) = (former, wanted.get_mut(to)) {
                wanted.former.insert(duty.clone(), former.clone());
            }
        }
    }

    /// What was on its way to a member moves no more, and comes from somebody all the same.
    pub(super) fn name_former(
        &self,
        id: &MemberId,
        before: Option<&Arc<Roster>>,
        duties: &BTreeSet<DutyId>,
        former: &mut BTreeMap<DutyId, MemberId>,
    ) {
        let is_new = |duty: &&DutyId| before.is_none_or(|before| !before.duties.contains(*duty));
        for (duty, who) in
            self.bereft.iter().filter(|(duty, who)| duties.contains(*duty) && *who != id)
        {
            if is_new(&duty) && !former.contains_key(duty) {
                former.insert(duty.clone(), who.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Placing, Subject};
    use super::*;
    use incumbent_core::Moment;
    use incumbent_core::store::{ErrorKind, Outcome, Version};
    use incumbent_core::stored::Stored;

    #[test]
    fn what_a_plan_decided_is_known_until_its_roster_is_written() {
        let [from, to] = ["from", "to"].map(MemberId::new);
        let duty = DutyId::new("work", "d1").unwrap();
        let duties: BTreeSet<DutyId> = [duty.clone()].into();
        let roster = Arc::new(Roster { duties, ..Roster::empty(to.clone(), 1) });
        let subject = Subject::Roster(to.clone());
        let mut placing = Placing::new(1);
        placing.was_placed = true;
        placing.bereft.insert(duty.clone(), from.clone());
        placing.writing.insert(to.clone(), Arc::clone(&roster));
        placing.wrote(Moment::START, &subject, Err(ErrorKind::Unavailable));
        assert_eq!(placing.on_the_way(), [(duty.clone(), to.clone())].into());
        assert_eq!(placing.bereft.get(&duty), Some(&from), "who had it isn't forgotten either");
        placing.writing.insert(to, roster);
        let applied = Outcome::Applied(Version::new("1"));
        placing.wrote(Moment::START, &subject, Ok(&applied));
        assert!(placing.bereft.is_empty(), "it is on a roster that the store has");
    }

    #[test]
    fn the_next_leader_reads_from_rosters_what_was_on_its_way() {
        let [from, to] = ["from", "to"].map(MemberId::new);
        let duty = DutyId::new("work", "d1").unwrap();
        let successors = BTreeMap::from([(duty.clone(), to.clone())]);
        let roster = Roster { successors, ..Roster::empty(from.clone(), 1) };
        let version = Some(Version::new("1"));
        let mut placing = Placing::new(2);
        placing.rosters.insert(from, Stored { content: Some(Arc::new(roster)), version });
        assert_eq!(placing.on_the_way(), [(duty, to)].into());
        placing.was_placed = true;
        assert!(placing.on_the_way().is_empty(), "it may be long ago");
    }
}
