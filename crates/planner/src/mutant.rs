//! Planted mistakes, to show that the properties bite. Without the feature `mutants` every
//! question is answered with a constant `false`.

/// A mistake that can be planted in the planner.
#[allow(missing_docs, reason = "each is described by `story`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlanMutant {
    VersionsIgnored,
    CapacityIgnored,
    CordonIgnored,
    ApartIgnored,
    PausedStarts,
    DrainForgotten,
    MovesForNothing,
    AllToOne,
    MovesTooMuch,
    RoundLimitIgnored,
    NodeLimitIgnored,
    InputOrder,
    GivesUpEarly,
    BalancedMeansDone,
    UnknownPinPoisons,
    FailedStays,
    Tireless,
    ZonesBeforeAll,
    LeaverForgotten,
    ChangeUnread,
}

impl PlanMutant {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::VersionsIgnored,
        Self::CapacityIgnored,
        Self::CordonIgnored,
        Self::ApartIgnored,
        Self::PausedStarts,
        Self::DrainForgotten,
        Self::MovesForNothing,
        Self::AllToOne,
        Self::MovesTooMuch,
        Self::RoundLimitIgnored,
        Self::NodeLimitIgnored,
        Self::InputOrder,
        Self::GivesUpEarly,
        Self::BalancedMeansDone,
        Self::UnknownPinPoisons,
        Self::FailedStays,
        Self::Tireless,
        Self::ZonesBeforeAll,
        Self::LeaverForgotten,
        Self::ChangeUnread,
    ];

    /// What the mistake is, in a sentence.
    #[must_use]
    pub fn story(self) -> &'static str {
        match self {
            Self::VersionsIgnored => "a node gets duties of versions that it can't run (F40)",
            Self::CapacityIgnored => "survivors are loaded past their capacity (F39)",
            Self::CordonIgnored => "a cordoned node gets new duties",
            Self::ApartIgnored => "duties that are kept apart meet on a node",
            Self::PausedStarts => "a paused duty is placed (F44)",
            Self::DrainForgotten => "a draining node keeps its duties",
            Self::MovesForNothing => "duties move where nothing becomes more even",
            Self::AllToOne => "all homeless duties of a round go to one node (F45)",
            Self::MovesTooMuch => "a node that joins takes more than its share",
            Self::RoundLimitIgnored => "more moves in a round than are allowed",
            Self::NodeLimitIgnored => "more moves at a node than are allowed",
            Self::InputOrder => "the order of the input decides",
            Self::GivesUpEarly => "a duty is given up if the least loaded node is full (F39)",
            Self::BalancedMeansDone => "an even cluster isn't looked at for homeless duties (F47)",
            Self::UnknownPinPoisons => "a pin to an unknown node stops all planning (F43)",
            Self::FailedStays => "a duty goes on where it failed although others could run it",
            Self::Tireless => "planning goes on however long it takes (O1)",
            Self::ZonesBeforeAll => {
                "recovery looks at zones alone and passes over nodes that lack duties (O17)"
            }
            Self::LeaverForgotten => "indexes that are kept don't learn that a node left",
            Self::ChangeUnread => "indexes that are kept don't learn that a node changed",
        }
    }
}

/// Which mistake is planted, if any. Without the feature `mutants` never one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlantedInPlan {
    #[cfg(feature = "mutants")]
    mutant: Option<PlanMutant>,
}

impl PlantedInPlan {
    /// Plants a mistake.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub const fn new(mutant: Option<PlanMutant>) -> Self {
        Self { mutant }
    }

    /// Whether this one is planted.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn is(self, mutant: PlanMutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Whether this one is planted: never.
    #[cfg(not(feature = "mutants"))]
    #[must_use]
    #[inline(always)]
    pub const fn is(self, _: PlanMutant) -> bool {
        false
    }
}
