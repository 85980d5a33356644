//! How members, leases and duties stand, in a word or two, wherever that is shown.

use incumbent::{Ask, DutyCondition, DutyStanding, Intent, LeaseState, Member, MemberState};

use crate::tone::Tone;

/// The state of a member, and what operators want of its node.
pub(crate) fn member(member: &Member, intents: &[Intent]) -> (&'static str, Tone) {
    let (state, tone) = alone(member);
    // Drained says more than cordoned; what isn't well says more than either.
    match asked(member, intents).into_iter().max().filter(|_| tone == Tone::Good) {
        Some(asked) => (asked, Tone::Odd),
        None => (state, tone),
    }
}

/// What operators want of a member's node.
pub(crate) fn asked(member: &Member, intents: &[Intent]) -> Vec<&'static str> {
    let asked = intents.iter().filter_map(|intent| match &intent.ask {
        Ask::Drain { node } if *node == member.node => Some("drained"),
        Ask::Cordon { node } if *node == member.node => Some("cordoned"),
        _ => None,
    });
    asked.collect()
}

fn alone(member: &Member) -> (&'static str, Tone) {
    if member.is_overdue() {
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
    if state.unreadable.is_some() {
        return ("unreadable".to_owned(), Tone::Bad);
    }
    match &state.leader {
        None => ("nobody".to_owned(), Tone::Odd),
        Some(leader) if leader.is_overdue() => (format!("{} (overdue)", leader.node), Tone::Bad),
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
    let (said, tone) = condition(duty);
    let Some(pinned) = &duty.pinned else { return (said, tone) };
    let to = match &duty.node {
        Some(node) if *node == pinned.node => "here".to_owned(),
        Some(_) | None => format!("to {}", pinned.node),
    };
    let pin = format!("pinned {to}{}", if pinned.required { " or nowhere" } else { "" });
    (if said.is_empty() { pin } else { format!("{said}; {pin}") }, tone)
}

fn condition(duty: &DutyStanding) -> (String, Tone) {
    match &duty.condition {
        DutyCondition::Active => (duty.progress.clone().unwrap_or_default(), Tone::Good),
        DutyCondition::Assigning | DutyCondition::Revoking => (String::new(), Tone::Odd),
        DutyCondition::Unassigned(reason) => (reason.clone(), Tone::Bad),
        DutyCondition::Failing { error, times, .. } => (format!("{times}×: {error}"), Tone::Bad),
        _ => (String::new(), Tone::Faint),
    }
}
