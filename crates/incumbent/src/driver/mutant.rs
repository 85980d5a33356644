//! Planted mistakes in driver and runners, to show that the checks of `crates/drill` bite.
//!
//! Without the feature `mutants` every question is answered with a constant `false`.

/// A mistake that can be planted in the library.
#[allow(missing_docs, reason = "each is described by `story`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DriverMutant {
    GuardSkipsTrust,
    FreedWhenTold,
    TrustWithoutMargin,
    BrokenKeepsTrust,
    WatchMissing,
    GraceFromNow,
    AbortForgotten,
    PlannedOnTheBeat,
    DroppedHere,
    HoldNeverReleased,
    PanicIsFinal,
    LossUntold,
    EndedStillHeld,
    SeatNeverClosed,
    FormerWorkLeftBehind,
}

impl DriverMutant {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::GuardSkipsTrust,
        Self::FreedWhenTold,
        Self::TrustWithoutMargin,
        Self::BrokenKeepsTrust,
        Self::WatchMissing,
        Self::GraceFromNow,
        Self::AbortForgotten,
        Self::PlannedOnTheBeat,
        Self::DroppedHere,
        Self::HoldNeverReleased,
        Self::PanicIsFinal,
        Self::LossUntold,
        Self::EndedStillHeld,
        Self::SeatNeverClosed,
        Self::FormerWorkLeftBehind,
    ];

    /// Its name, as people write it.
    #[must_use]
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }

    /// What the mistake is, in a sentence.
    #[must_use]
    pub fn story(self) -> &'static str {
        match self {
            Self::GuardSkipsTrust => "work is polled without a look at the clock",
            Self::FreedWhenTold => {
                "a lease is freed when its work is told to end, and not when it has ended"
            }
            Self::TrustWithoutMargin => "the driver publishes trust that lasts for the whole ttl",
            Self::BrokenKeepsTrust => "a driver that panicked leaves trust as it was",
            Self::WatchMissing => {
                "nobody but the driver ends trust, so that a stuck one keeps work that sleeps"
            }
            Self::GraceFromNow => {
                "a runner counts the grace period from when it comes to it, and not from when work was told"
            }
            Self::AbortForgotten => "work that does not end by itself is never aborted",
            Self::PlannedOnTheBeat => "placements run on the thread that beats",
            Self::DroppedHere => {
                "what the application handed in is dropped on a thread of incumbent's own"
            }
            Self::HoldNeverReleased => "the driver does not hear that work has ended",
            Self::PanicIsFinal => "work that panicked is never started again",
            Self::LossUntold => "subscribers do not hear of terms that were lost at once",
            Self::EndedStillHeld => "a term that has ended still answers that it is held",
            Self::SeatNeverClosed => "who waits for an election is not told that the node has left",
            Self::FormerWorkLeftBehind => {
                "a node leaves without waiting for the work from before its driver panicked"
            }
        }
    }
}

/// Whether this mistake is planted where this code runs.
#[inline(always)]
pub(crate) fn planted(mutant: DriverMutant) -> bool {
    #[cfg(feature = "mutants")]
    return crate::testing::planted(mutant);
    #[cfg(not(feature = "mutants"))]
    {
        let _ = mutant;
        false
    }
}
