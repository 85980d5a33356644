//! Planted mistakes in driver and runners, to show that the checks of `crates/drill` bite.
//!
//! Without the feature `mutants` every question is answered with a constant `false`.

/// A mistake that can be planted in the library.
#[allow(missing_docs, reason = "each is described by `story`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mutant {
    GuardSkipsTrust,
}

impl Mutant {
    /// All of them.
    pub const ALL: &[Self] = &[Self::GuardSkipsTrust];

    /// What the mistake is, in a sentence.
    #[must_use]
    pub fn story(self) -> &'static str {
        match self {
            Self::GuardSkipsTrust => "work is polled without a look at the clock",
        }
    }
}

/// Whether this mistake is planted where this code runs.
#[inline(always)]
pub(crate) fn planted(mutant: Mutant) -> bool {
    #[cfg(feature = "mutants")]
    return crate::testing::planted(mutant);
    #[cfg(not(feature = "mutants"))]
    {
        let _ = mutant;
        false
    }
}
