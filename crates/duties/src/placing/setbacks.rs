//! What speaks against a version although no report says so: processes that end without leaving
//! soon after they got a duty, and preparations that never end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::duty::DutyId;
use crate::records::{Rollout, Roster};
use incumbent_core::Moment;
use incumbent_core::names::MemberId;

/// A duty that ran for so long on a node is not what ended it.
pub(super) const LASTING: Duration = Duration::from_secs(60);

/// After so many setbacks a duty goes back, as it does after so many failures that are reported.
const MOST: u32 = 3;

/// A setback without another one for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// What a node can run of a family.
type Versions = BTreeSet<String>;

/// Since when a member has each duty, and what it can run.
type Since = BTreeMap<MemberId, BTreeMap<DutyId, (Moment, Versions)>>;

/// Setbacks, by duty and version. They outlive the members that had them, and are lost with the
/// leader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Setbacks {
    /// What has not run for long yet.
    recent: Since,
    /// Who prepares for what.
    preparing: Since,
    counts: BTreeMap<(DutyId, Versions), Setback>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Setback {
    times: u32,
    last: Moment,
    why: String,
}

impl Setbacks {
    /// A roster is written. What a node can run is said of duties that have several versions.
    pub(super) fn assign(
        &mut self,
        now: Moment,
        roster: &Roster,
        new: &[DutyId],
        versions: impl Fn(&DutyId) -> Option<Versions>,
    ) {
        let recent = self.recent.entry(roster.member.clone()).or_default();
        recent.retain(|duty, _| roster.duties.contains(duty));
        let known = |duty: &DutyId| Some((duty.clone(), (now, versions(duty)?)));
        recent.extend(new.iter().filter_map(known));
        let preparing = self.preparing.entry(roster.member.clone()).or_default();
        preparing.retain(|duty, _| roster.preparing.contains(duty));
        let others = roster.preparing.iter().filter(|duty| !preparing.contains_key(*duty));
        let others: Vec<_> = others.filter_map(known).collect();
        preparing.extend(others);
        self.recent.retain(|_, duties| !duties.is_empty());
        self.preparing.retain(|_, duties| !duties.is_empty());
    }

    /// The members that have something new.
    pub(super) fn members(&self) -> BTreeSet<MemberId> {
        self.recent.keys().chain(self.preparing.keys()).cloned().collect()
    }

    /// A member is gone. What it had been given shortly before may be the reason, unless it left
    /// in order.
    pub(super) fn end(
        &mut self,
        now: Moment,
        lasting: Duration,
        member: &MemberId,
        left: bool,
        roster: Option<&Roster>,
    ) {
        let recent = self.recent.remove(member).unwrap_or_default();
        let preparing = self.preparing.remove(member).unwrap_or_default();
        let Some(roster) = roster.filter(|_| !left) else { return };
        for (duty, (since, versions)) in recent {
            if now >= since + lasting {
                self.counts.remove(&(duty, versions));
            } else if roster.duties.contains(&duty) {
                self.count(now, duty, versions, "its process ended soon after it had started it");
            }
        }
        for (duty, (_, versions)) in preparing {
            if roster.preparing.contains(&duty) {
                self.count(now, duty, versions, "its process ended while it prepared for it");
            }
        }
    }

    /// Who didn't say in time whether it is prepared for what, which counts as a setback. It has
    /// twice as long the next time, as has another: preparing may just take long.
    pub(super) fn overdue(
        &mut self,
        now: Moment,
        patience: impl Fn(&MemberId, &DutyId) -> Option<Duration>,
    ) -> Vec<(MemberId, DutyId)> {
        let mut overdue = Vec::new();
        for (member, duty, versions, until) in self.deadlines(patience) {
            if now >= until {
                overdue.push((member.clone(), duty.clone(), versions.clone()));
            }
        }
        let mut late = Vec::new();
        for (member, duty, versions) in overdue {
            let preparing = self.preparing.get_mut(&member);
            if let Some((since, _)) = preparing.and_then(|it| it.get_mut(&duty)) {
                *since = now;
            }
            self.count(now, duty.clone(), versions, "preparing for it did not end in time");
            late.push((member, duty));
        }
        late
    }

    /// When the first of them is overdue.
    pub(super) fn next_overdue(
        &self,
        patience: impl Fn(&MemberId, &DutyId) -> Option<Duration>,
    ) -> Option<Moment> {
        self.deadlines(patience).map(|(_, _, _, until)| until).min()
    }

    /// By when each preparation must have ended. There is no such time for those that have.
    fn deadlines(
        &self,
        patience: impl Fn(&MemberId, &DutyId) -> Option<Duration>,
    ) -> impl Iterator<Item = (&MemberId, &DutyId, &Versions, Moment)> {
        let all = self.preparing.iter().flat_map(|(member, preparing)| {
            preparing.iter().map(move |(duty, (since, versions))| (member, duty, versions, *since))
        });
        all.filter_map(move |(member, duty, versions, since)| {
            let before = self.counts.get(&(duty.clone(), versions.clone()));
            let times = before.map_or(0, |setback| setback.times.min(MOST));
            let until = since + patience(member, duty)? * (1 << times);
            Some((member, duty, versions, until))
        })
    }

    /// What has run for long enough is well, and what happened before is forgotten.
    pub(super) fn settle(
        &mut self,
        now: Moment,
        lasting: Duration,
        waits: impl Fn(&MemberId, &DutyId) -> bool,
    ) {
        let counts = &mut self.counts;
        for (member, recent) in &mut self.recent {
            recent.retain(|duty, (since, versions)| {
                if waits(member, duty) {
                    *since = now;
                }
                let is_recent = now < *since + lasting;
                if !is_recent {
                    counts.remove(&(duty.clone(), versions.clone()));
                }
                is_recent
            });
        }
        self.recent.retain(|_, duties| !duties.is_empty());
        self.counts.retain(|_, setback| now < setback.last + FORGOTTEN);
    }

    /// What doesn't need to be remembered here, as the store has it.
    pub(super) fn noted(&mut self, rollout: &Rollout) {
        self.counts.retain(|(duty, versions), _| {
            let known = rollout.families.get(duty.family());
            let against =
                |it: &String| known.is_some_and(|known| known.against(duty.name(), it).is_some());
            !versions.iter().any(against)
        });
    }

    /// Duties that had too many setbacks on nodes that can run these versions, and the last.
    pub(super) fn too_many(&self) -> Vec<(DutyId, Versions, String)> {
        let counts = self.counts.iter().filter(|(_, setback)| setback.times >= MOST);
        let tell = |setback: &Setback| format!("{} times {}", setback.times, setback.why);
        counts.map(|((duty, it), setback)| (duty.clone(), it.clone(), tell(setback))).collect()
    }

    fn count(&mut self, now: Moment, duty: DutyId, versions: Versions, why: &str) {
        let none = Setback { times: 0, last: now, why: String::new() };
        let setback = self.counts.entry((duty, versions)).or_insert(none);
        setback.times = setback.times.saturating_add(1);
        setback.last = now;
        why.clone_into(&mut setback.why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(63);

    fn at(seconds: u64) -> Moment {
        Moment::START + Duration::from_secs(seconds)
    }

    fn duty() -> DutyId {
        DutyId::new("shard", "a").unwrap()
    }

    fn two() -> Versions {
        ["2".to_owned()].into()
    }

    fn roster(member: &str) -> Roster {
        let empty = Roster::empty(MemberId::new(member), 1);
        Roster { duties: [duty()].into(), ..empty }
    }

    /// A member gets the duty, and is gone so many seconds later.
    fn lives(setbacks: &mut Setbacks, member: &str, from: u64, to: u64, left: bool) {
        let roster = roster(member);
        setbacks.assign(at(from), &roster, &[duty()], |_| Some(two()));
        setbacks.end(at(to), LONG, &roster.member, left, Some(&roster));
    }

    #[test]
    fn processes_that_end_soon_count_although_each_is_another_member() {
        // Seen: 17 crashes of version 2, and version 1 never got the duty back.
        let mut setbacks = Setbacks::default();
        lives(&mut setbacks, "m1", 0, 3, false);
        lives(&mut setbacks, "m2", 5, 8, false);
        assert_eq!(setbacks.too_many(), []);
        lives(&mut setbacks, "m3", 10, 13, false);
        let why = "3 times its process ended soon after it had started it".to_owned();
        assert_eq!(setbacks.too_many(), [(duty(), two(), why)]);
        let mut rollout = Rollout::none(1);
        rollout.give_up("shard", "a", "2", "it crashes");
        setbacks.noted(&rollout);
        assert_eq!(setbacks.too_many(), [], "an operator may have it tried again");
    }

    #[test]
    fn who_leaves_in_order_or_ran_it_for_long_speaks_for_nothing() {
        let mut setbacks = Setbacks::default();
        for round in 0..5 {
            lives(&mut setbacks, "m1", round * 10, round * 10 + 1, true);
            lives(&mut setbacks, "m2", 100 + round * 100, 170 + round * 100, false);
        }
        assert!(setbacks.counts.is_empty() && setbacks.members().is_empty(), "{setbacks:?}");
        lives(&mut setbacks, "m3", 600, 601, false);
        lives(&mut setbacks, "m4", 602, 603, false);
        setbacks.assign(at(604), &roster("m5"), &[duty()], |_| Some(two()));
        setbacks.settle(at(660), LONG, |_, _| true);
        setbacks.settle(at(700), LONG, |_, _| false);
        assert_eq!(setbacks.members().len(), 1, "its time begins when it runs");
        setbacks.settle(at(723), LONG, |_, _| false);
        assert!(setbacks.counts.is_empty() && setbacks.members().is_empty(), "{setbacks:?}");
    }

    #[test]
    fn what_no_roster_named_and_what_has_one_version_is_not_counted() {
        let mut setbacks = Setbacks::default();
        for _ in 0..3 {
            setbacks.assign(at(0), &roster("m1"), &[duty()], |_| Some(two()));
            setbacks.end(at(1), LONG, &MemberId::new("m1"), false, None);
            setbacks.assign(at(1), &roster("m2"), &[duty()], |_| None);
            setbacks.end(at(2), LONG, &MemberId::new("m2"), false, Some(&roster("m2")));
        }
        assert_eq!(setbacks, Setbacks::default());
    }

    #[test]
    fn preparations_that_never_end_count_and_are_given_twice_as_long_each_time() {
        // Seen: a hook that hung on one node held up its duty for ever.
        let roster = Roster { preparing: [duty()].into(), ..Roster::empty(MemberId::new("m1"), 1) };
        let mut setbacks = Setbacks::default();
        let patience = |_: &MemberId, _: &DutyId| Some(Duration::from_secs(30));
        setbacks.assign(at(0), &roster, &[], |_| Some(two()));
        assert_eq!(setbacks.next_overdue(|_, _| None), None, "it is prepared");
        let mut times = Vec::new();
        while setbacks.too_many().is_empty() {
            let now = setbacks.next_overdue(patience).unwrap();
            assert_eq!(setbacks.overdue(now, patience), [(roster.member.clone(), duty())]);
            assert_eq!(setbacks.overdue(now, patience), [], "once");
            setbacks.assign(now, &roster, &[], |_| Some(two()));
            times.push(now);
        }
        assert_eq!(times, [at(30), at(90), at(210)]);
    }

    #[test]
    fn setbacks_are_forgotten_after_an_hour() {
        let mut setbacks = Setbacks::default();
        lives(&mut setbacks, "m1", 0, 1, false);
        setbacks.settle(at(3600), LONG, |_, _| false);
        assert_eq!(setbacks.counts.len(), 1);
        setbacks.settle(at(3601), LONG, |_, _| false);
        assert_eq!(setbacks.counts.len(), 0);
    }
}
