//! Which invariant each planted mistake must violate.

use incumbent::DriverMutant;

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
pub fn caught_by(mutant: DriverMutant) -> &'static str {
    match mutant {
        DriverMutant::GuardSkipsTrust => steps::NAME,
        DriverMutant::FreedWhenTold => work_first::NAME,
        DriverMutant::TrustWithoutMargin => trust_bound::NAME,
        DriverMutant::BrokenKeepsTrust => broken::NAME,
        DriverMutant::WatchMissing | DriverMutant::GraceFromNow | DriverMutant::AbortForgotten => {
            ends::NAME
        }
        DriverMutant::PlannedOnTheBeat | DriverMutant::DroppedHere => foreign::NAME,
        DriverMutant::HoldNeverReleased | DriverMutant::PanicIsFinal => liveness::NAME,
        DriverMutant::LossUntold => events::NAME,
        DriverMutant::EndedStillHeld => one_leader::NAME,
        DriverMutant::SeatNeverClosed | DriverMutant::FormerWorkLeftBehind => left::NAME,
    }
}
