//! How members, leases and duties stand, in a word or two, wherever that is shown.

use incumbent::{DutyCondition, DutyStanding, LeaseState, Member, MemberState};

use crate::json::overdue;
use crate::tone::Tone;

/// The state of a member.
pub(crate) fn member(member: &Member) -> (&'static str, Tone) {
    if overdue(member.state, member.age, member.ttl) {
        return ("overdue", Tone::Bad);
    }
    let tone = match member.state {
        MemberState::Alive => Tone::Good,
        MemberState::Left => Tone::Faint,
        MemberState::Expired | MemberState::Evicted => Tone::Odd,
    };
    (member.state.as_str(), tone)
}

/// Who leads.
pub(crate) fn leader(state: &LeaseState) -> (String, Tone) {
    match &state.leader {
        None => ("nobody".to_owned(), Tone::Odd),
        Some(leader) if overdue(leader.state, leader.age, Some(leader.ttl)) => {
            (format!("{} (overdue)", leader.node), Tone::Bad)
        }
        Some(leader) => match leader.state {
            MemberState::Alive => (leader.node.clone(), Tone::Good),
            MemberState::Left | MemberState::Expired | MemberState::Evicted => {
                (format!("{} ({})", leader.node, leader.state.as_str()), Tone::Odd)
            }
        },
    }
}

/// What there is to say about a duty beside its state.
pub(crate) fn duty(duty: &DutyStanding) -> (String, Tone) {
    match &duty.condition {
        DutyCondition::Active => (duty.progress.clone().unwrap_or_default(), Tone::Good),
        DutyCondition::Assigning | DutyCondition::Revoking => (String::new(), Tone::Odd),
        DutyCondition::Unassigned(reason) => (reason.clone(), Tone::Bad),
        DutyCondition::Failing { error, times, .. } => (format!("{times}×: {error}"), Tone::Bad),
        DutyCondition::Paused | DutyCondition::Done => (String::new(), Tone::Faint),
    }
}
