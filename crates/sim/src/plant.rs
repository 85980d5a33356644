//! Mistakes to plant, and the checker that each is named for.

use incumbent_core::mutant::Mutant;

use crate::store::Flaw;

/// What is wrong in this run on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Nothing.
    Nothing,
    /// The core makes a mistake.
    Core(Mutant),
    /// The store breaks its contract.
    Store(Flaw),
    /// Clocks stand still while their process is paused, as `Instant` does in a sleeping machine.
    ClockStops,
    /// The wall clock is taken for the clock.
    WallClock,
    /// A witness takes a process that stands still for a dead one.
    PausedIsDead,
}

impl Plant {
    /// Every mistake that can be planted.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let core = Mutant::ALL.iter().copied().map(Self::Core);
        let flaws = [Flaw::VersionsRestart, Flaw::BlindSwap];
        core.chain(flaws.into_iter().map(Self::Store))
            .chain([Self::ClockStops, Self::WallClock, Self::PausedIsDead])
            .collect()
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let camel = match self {
            Self::Nothing => "Nothing".to_owned(),
            Self::Core(mutant) => format!("{mutant:?}"),
            Self::Store(flaw) => format!("Store{flaw:?}"),
            Self::ClockStops => "ClockStops".to_owned(),
            Self::WallClock => "WallClock".to_owned(),
            Self::PausedIsDead => "PausedIsDead".to_owned(),
        };
        let mut name = String::new();
        for letter in camel.chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }

    /// What the mistake is.
    #[must_use]
    pub fn story(self) -> &'static str {
        match self {
            Self::Nothing => "nothing is planted",
            Self::Core(mutant) => mutant.story(),
            Self::Store(Flaw::VersionsRestart) => "the store's versions begin again after a delete",
            Self::Store(Flaw::BlindSwap) => "the store swaps without comparing",
            Self::ClockStops => "clocks stand still while their process is paused",
            Self::WallClock => "the wall clock, which jumps, is taken for the clock",
            Self::PausedIsDead => "a witness takes a process that stands still for a dead one",
        }
    }

    /// The checker that must catch it.
    #[must_use]
    pub fn caught_by(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Core(mutant) => named_for(mutant),
            Self::Store(Flaw::BlindSwap) => "terms",
            Self::Store(Flaw::VersionsRestart) => "closing",
            Self::ClockStops | Self::WallClock | Self::PausedIsDead => "one-leader",
        }
    }
}

fn named_for(mutant: Mutant) -> &'static str {
    match mutant {
        Mutant::TrustFromReply | Mutant::NoMargin | Mutant::SettledBeatTrustsFromRead => {
            "trust-bound"
        }
        Mutant::ExpiryWithoutSwap
        | Mutant::DeathWithoutSwap
        | Mutant::CloseAndTakeTogether
        | Mutant::AbsentMeansClosed
        | Mutant::ReleaseNotScoped => "scoped",
        Mutant::StoreClockDecides
        | Mutant::WatchFromSend
        | Mutant::WatcherUsesOwnTtl
        | Mutant::TtlChangesInMidLife
        | Mutant::EvictedFreeAtOnce
        | Mutant::EvictedDeletedEarly
        | Mutant::ReleaseSettledByRead
        | Mutant::AnyReadElects
        | Mutant::ForgottenTakenAtOnce
        | Mutant::ForgottenElectedWithoutBeat
        | Mutant::NewHolderUnexpected
        | Mutant::PastForgotten
        | Mutant::FormerForgotten
        | Mutant::AskedIsThere
        | Mutant::MarkEndsLoss
        | Mutant::LossesMixedUp
        | Mutant::WaitOutlivesMember
        | Mutant::AnySightProves
        | Mutant::FreedWithoutProof
        | Mutant::EvictionNotReadAgain
        | Mutant::StampSentTwice
        | Mutant::MemberIdReused
        | Mutant::CreateRetriedAndBeatsOn => "one-leader",
        Mutant::BeatOverClosed
        | Mutant::LeaveThenGoOn
        | Mutant::AliveDeleted
        | Mutant::VanishedClosedAtOnce
        | Mutant::TakeNotDurable => "closing",
        Mutant::LateTakeIgnored
        | Mutant::DoubtfulTakeForgotten
        | Mutant::FormerNameStays
        | Mutant::EndlessHoldBack
        | Mutant::ViewInDoubtForgotten
        | Mutant::LeasesNotReadAgain
        | Mutant::HintsRequired => "liveness",
        Mutant::HintLostWhileLooking | Mutant::FreedUntold => "hand-over",
        Mutant::LeaseDeleted
        | Mutant::TermNotRaised
        | Mutant::ForgottenTermRestarts
        | Mutant::LossesCounted => "terms",
        Mutant::TakeWithoutTrustCheck | Mutant::ElectedTwice => "events",
        Mutant::FreedBeforeStopped | Mutant::LeftBeforeStopped => "work-first",
        Mutant::RewritesSteadyView | Mutant::RewritesSteadyRosters => "steady",
        Mutant::DutyWithoutLease => "one-leader",
        Mutant::RosterOutlivesMember
        | Mutant::NoEmptyRosters
        | Mutant::CapabilityIgnored
        | Mutant::PausedIsPlaced
        | Mutant::StalePlanApplied
        | Mutant::MissingListMeansNone => "rosters",
        Mutant::OldStoppedBeforePrepared | Mutant::MoveForgotten => "deploys",
        Mutant::NewestVersionOnly | Mutant::FailedVersionStays => "placed",
        Mutant::RostersForgotten => "movement",
        Mutant::AcknowledgedBeforeStart
        | Mutant::AcknowledgeTimeoutIgnored
        | Mutant::FailingStays
        | Mutant::OldLeasesListed
        | Mutant::RecordsUnbounded
        | Mutant::RecoveryWaits => "placed",
        Mutant::NobodySweeps | Mutant::RemainsForgotten => "remains",
        Mutant::RetriesAtOnce | Mutant::RefusedReadAtOnce => "patience",
        Mutant::NeverLeadsAllTheSame => "cluster-lead",
    }
}
