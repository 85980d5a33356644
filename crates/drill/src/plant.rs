//! Which invariant each planted mistake must violate.

use incumbent::Mutant;

use crate::invariants::{
    broken, ends, events, foreign, left, liveness, one_leader, steps, terms, trust_bound,
    work_first,
};

/// The names of all invariants.
pub const INVARIANTS: [&str; 11] = [
    one_leader::NAME,
    trust_bound::NAME,
    steps::NAME,
    work_first::NAME,
    terms::NAME,
    events::NAME,
    foreign::NAME,
    ends::NAME,
    broken::NAME,
    liveness::NAME,
    left::NAME,
];

/// The invariant that this mistake is named for.
#[must_use]
pub fn caught_by(mutant: Mutant) -> &'static str {
    match mutant {
        Mutant::GuardSkipsTrust => steps::NAME,
        Mutant::FreedWhenTold => work_first::NAME,
        Mutant::TrustWithoutMargin => trust_bound::NAME,
        Mutant::BrokenKeepsTrust => broken::NAME,
        Mutant::WatchMissing | Mutant::GraceFromNow | Mutant::AbortForgotten => ends::NAME,
        Mutant::PlannedOnTheBeat | Mutant::DroppedHere => foreign::NAME,
        Mutant::HoldNeverReleased | Mutant::PanicIsFinal => liveness::NAME,
        Mutant::LossUntold => events::NAME,
        Mutant::EndedStillHeld => one_leader::NAME,
        Mutant::SeatNeverClosed | Mutant::FormerWorkLeftBehind => left::NAME,
    }
}
