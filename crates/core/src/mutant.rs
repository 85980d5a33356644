//! Planted mistakes, to show that the checkers bite.
//!
//! Each is a plausible way to get the protocol wrong. They live in the real core so that what is
//! checked is what runs; without the feature `mutants` every question is answered with a
//! constant `false` and the mistakes compile to nothing.

/// What is done instead where a mistake is planted, and what is done: one line, and never a branch.
macro_rules! fault {
    ($planted:expr, $mutant:ident => $wrong:expr, $right:expr) => {
        if $planted.is($crate::mutant::Mutant::$mutant) { $wrong } else { $right }
    };
}
pub(crate) use fault;

/// A mistake that can be planted in the core.
#[allow(missing_docs, reason = "each is described by `story`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mutant {
    TrustFromReply,
    NoMargin,
    ExpiryWithoutSwap,
    DeathWithoutSwap,
    StoreClockDecides,
    WatchFromSend,
    CloseAndTakeTogether,
    AbsentMeansClosed,
    ReleaseSettledByRead,
    LeaveThenGoOn,
    EvictedFreeAtOnce,
    EvictedDeletedEarly,
    SettledBeatTrustsFromRead,
    WatcherUsesOwnTtl,
    TtlChangesInMidLife,
    LateTakeIgnored,
    DoubtfulTakeForgotten,
    AnyReadElects,
    ForgottenTakenAtOnce,
    ForgottenTermRestarts,
    ForgottenElectedWithoutBeat,
    LossesCounted,
    FormerNameStays,
    NewHolderUnexpected,
    PastForgotten,
    FormerForgotten,
    MarkEndsLoss,
    LossesMixedUp,
    WaitOutlivesMember,
    AnySightProves,
    FreedWithoutProof,
    EvictionNotReadAgain,
    VanishedClosedAtOnce,
    BeatOverClosed,
    EndlessHoldBack,
    MemberIdReused,
    CreateRetriedAndBeatsOn,
    StampSentTwice,
    AliveDeleted,
    LeaseDeleted,
    ReleaseNotScoped,
    TakeWithoutTrustCheck,
    TakeNotDurable,
    FreedBeforeStopped,
    TermNotRaised,
    HintsRequired,
    HintLostWhileLooking,
    FreedUntold,
    LeasesNotReadAgain,
    LeftBeforeStopped,
    ElectedTwice,
    RewritesSteadyView,
    RetriesAtOnce,
    RefusedReadAtOnce,
    DutyWithoutLease,
    RosterOutlivesMember,
    AcknowledgedBeforeStart,
    RostersForgotten,
    AcknowledgeTimeoutIgnored,
    FailingStays,
    CapabilityIgnored,
    PausedIsPlaced,
    MissingListMeansNone,
    RewritesSteadyRosters,
    RecoveryWaits,
    NoEmptyRosters,
    StalePlanApplied,
    ViewInDoubtForgotten,
    OldLeasesListed,
    RecordsUnbounded,
    NewestVersionOnly,
    OldStoppedBeforePrepared,
    MoveForgotten,
    AskedIsThere,
    FailedVersionStays,
    NobodySweeps,
    NeverLeadsAllTheSame,
    RemainsForgotten,
}

impl Mutant {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::TrustFromReply,
        Self::NoMargin,
        Self::ExpiryWithoutSwap,
        Self::DeathWithoutSwap,
        Self::StoreClockDecides,
        Self::WatchFromSend,
        Self::CloseAndTakeTogether,
        Self::AbsentMeansClosed,
        Self::ReleaseSettledByRead,
        Self::LeaveThenGoOn,
        Self::EvictedFreeAtOnce,
        Self::EvictedDeletedEarly,
        Self::SettledBeatTrustsFromRead,
        Self::WatcherUsesOwnTtl,
        Self::TtlChangesInMidLife,
        Self::LateTakeIgnored,
        Self::DoubtfulTakeForgotten,
        Self::AnyReadElects,
        Self::ForgottenTakenAtOnce,
        Self::ForgottenTermRestarts,
        Self::ForgottenElectedWithoutBeat,
        Self::LossesCounted,
        Self::FormerNameStays,
        Self::NewHolderUnexpected,
        Self::PastForgotten,
        Self::FormerForgotten,
        Self::MarkEndsLoss,
        Self::LossesMixedUp,
        Self::WaitOutlivesMember,
        Self::AnySightProves,
        Self::FreedWithoutProof,
        Self::EvictionNotReadAgain,
        Self::VanishedClosedAtOnce,
        Self::BeatOverClosed,
        Self::EndlessHoldBack,
        Self::MemberIdReused,
        Self::CreateRetriedAndBeatsOn,
        Self::StampSentTwice,
        Self::AliveDeleted,
        Self::LeaseDeleted,
        Self::ReleaseNotScoped,
        Self::TakeWithoutTrustCheck,
        Self::TakeNotDurable,
        Self::FreedBeforeStopped,
        Self::TermNotRaised,
        Self::HintsRequired,
        Self::HintLostWhileLooking,
        Self::FreedUntold,
        Self::LeasesNotReadAgain,
        Self::LeftBeforeStopped,
        Self::ElectedTwice,
        Self::RewritesSteadyView,
        Self::RetriesAtOnce,
        Self::RefusedReadAtOnce,
        Self::DutyWithoutLease,
        Self::RosterOutlivesMember,
        Self::AcknowledgedBeforeStart,
        Self::RostersForgotten,
        Self::AcknowledgeTimeoutIgnored,
        Self::FailingStays,
        Self::CapabilityIgnored,
        Self::PausedIsPlaced,
        Self::MissingListMeansNone,
        Self::RewritesSteadyRosters,
        Self::RecoveryWaits,
        Self::NoEmptyRosters,
        Self::StalePlanApplied,
        Self::ViewInDoubtForgotten,
        Self::OldLeasesListed,
        Self::RecordsUnbounded,
        Self::NobodySweeps,
        Self::NeverLeadsAllTheSame,
        Self::RemainsForgotten,
        Self::NewestVersionOnly,
        Self::OldStoppedBeforePrepared,
        Self::MoveForgotten,
        Self::AskedIsThere,
        Self::FailedVersionStays,
    ];

    /// What the mistake is, in a sentence.
    #[must_use]
    pub fn story(self) -> &'static str {
        match self {
            Self::TrustFromReply => "trust is counted from the reply to a beat, not from its send",
            Self::NoMargin => "trust lasts the whole ttl, with no margin for drifting clocks",
            Self::ExpiryWithoutSwap => {
                "a holder that seems expired is taken from without closing it"
            }
            Self::DeathWithoutSwap => {
                "what a member held is taken without closing it, because a witness saw it die"
            }
            Self::StoreClockDecides => "the age of a record by the store's clock decides expiry",
            Self::WatchFromSend => "a watch counts from the send of the read, not from its reply",
            Self::CloseAndTakeTogether => {
                "close and take are sent at once, not one after the other"
            }
            Self::AbsentMeansClosed => {
                "an absent holder is taken for closed without creating it so"
            }
            Self::ReleaseSettledByRead => "a read that doesn't show an unknown release undoes it",
            Self::LeaveThenGoOn => "after a leave with unknown outcome the member goes on",
            Self::EvictedFreeAtOnce => "an evicted member's leases are free at once",
            Self::EvictedDeletedEarly => "an evicted member's record is deleted before its ttl",
            Self::SettledBeatTrustsFromRead => {
                "an unknown beat found by a read is trusted from that read"
            }
            Self::WatcherUsesOwnTtl => "a watcher waits its own ttl instead of the record's",
            Self::TtlChangesInMidLife => "a member writes another ttl into its record while alive",
            Self::LateTakeIgnored => "a take that landed late is neither adopted nor freed",
            Self::DoubtfulTakeForgotten => {
                "a take in doubt is forgotten when the lease is not wanted any more"
            }
            Self::AnyReadElects => "any record that names me elects me, whichever attempt wrote it",
            Self::ForgottenTakenAtOnce => "a lease that the store forgot is taken at once",
            Self::ForgottenTermRestarts => {
                "after a loss terms go on from what the store shows, not from what was seen"
            }
            Self::ForgottenElectedWithoutBeat => {
                "after a loss a take elects, though the taker's member may be lost as well"
            }
            Self::LossesCounted => {
                "terms after a loss are counted from the last one seen, whatever the clock says"
            }
            Self::FormerNameStays => {
                "who is named by a record that the store went back to leaves its name in it"
            }
            Self::NewHolderUnexpected => {
                "who takes a lease before our eyes need not have a member record"
            }
            Self::PastForgotten => {
                "a node that joins anew in a process knows nothing of the one before"
            }
            Self::FormerForgotten => {
                "who is given a duty isn't told who ran it, and takes a lease that was lost at once"
            }
            Self::MarkEndsLoss => {
                "to write down what the store went back to ends the wait for what it lost"
            }
            Self::LossesMixedUp => {
                "what others have written since a loss is taken for that loss, and not for another"
            }
            Self::WaitOutlivesMember => {
                "who joins anew goes on waiting for what was lost from before it joined"
            }
            Self::AnySightProves => {
                "a holder that was ever seen alive counts as one that has beaten since it took the lease"
            }
            Self::FreedWithoutProof => {
                "what was taken after a loss and freed before a beat showed it may be taken at once"
            }
            Self::EvictionNotReadAgain => {
                "an eviction counts a ttl later, although the store may have gone back to before it"
            }
            Self::VanishedClosedAtOnce => {
                "a member that was seen alive, and whose record is gone, is closed at once"
            }
            Self::BeatOverClosed => "a beat overwrites a record that others closed",
            Self::EndlessHoldBack => "others hold back for a successor without bound",
            Self::MemberIdReused => "a node joins again under its old member id",
            Self::CreateRetriedAndBeatsOn => {
                "an unknown creation is sent again under the same id, which beats on after its trust ended"
            }
            Self::StampSentTwice => "a retry carries the stamp of the attempt before",
            Self::AliveDeleted => "clean-up deletes members that are not terminal",
            Self::LeaseDeleted => "a release deletes the lease record",
            Self::ReleaseNotScoped => "a release frees the lease whatever its term",
            Self::TakeWithoutTrustCheck => "trust is not checked again after a take succeeded",
            Self::TakeNotDurable => {
                "a take may be lost with the store's crash though it was acknowledged"
            }
            Self::FreedBeforeStopped => "the lease is freed before the work under it stopped",
            Self::TermNotRaised => "a take keeps the term",
            Self::HintsRequired => "a waiting candidate reads only when a hint comes",
            Self::HintLostWhileLooking => {
                "a hint that comes while a read is on its way is taken for answered by it"
            }
            Self::FreedUntold => "a beat doesn't say that its member has freed a lease",
            Self::LeasesNotReadAgain => {
                "a lease is never read again as long as its holder lives and says nothing of it"
            }
            Self::LeftBeforeStopped => "a member leaves before its work stopped",
            Self::ElectedTwice => "an election is announced again at the next beat",
            Self::RetriesAtOnce => "a read that failed is sent again at once",
            Self::RefusedReadAtOnce => {
                "whenever a closing is refused it is read and tried again at once"
            }
            Self::DutyWithoutLease => {
                "a duty starts when its roster names it, before its lease is held"
            }
            Self::RosterOutlivesMember => {
                "a new incarnation goes on wanting what the roster of the former one asked for"
            }
            Self::AcknowledgedBeforeStart => {
                "a duty is reported as started as soon as its lease is held"
            }
            Self::RostersForgotten => {
                "a new leader plans from nothing instead of from the rosters it finds"
            }
            Self::AcknowledgeTimeoutIgnored => "a duty that never starts is left where it is",
            Self::FailingStays => "a duty that keeps failing is left where it is",
            Self::CapabilityIgnored => "duties are placed on nodes that cannot run them",
            Self::PausedIsPlaced => "a paused duty is placed like any other",
            Self::MissingListMeansNone => "duties whose list is missing are taken for removed",
            Self::RewritesSteadyRosters => "the leader writes rosters that did not change",
            Self::RecoveryWaits => {
                "duties without a live owner wait for the quiet window like a rebalancing"
            }
            Self::NoEmptyRosters => "who is to run nothing gets no roster",
            Self::ViewInDoubtForgotten => {
                "a view whose write is in doubt isn't announced when it is found to be there"
            }
            Self::OldLeasesListed => "a new leader lists the leases of all duties that ever were",
            Self::RecordsUnbounded => {
                "records grow past what the store takes, and are refused for ever"
            }
            Self::NeverLeadsAllTheSame => {
                "a node that shall never lead the cluster stands for it all the same"
            }
            Self::NobodySweeps => {
                "where nobody leads the cluster, nobody deletes what the dead left behind"
            }
            Self::RemainsForgotten => "a request to resign whose term is over stays for ever",
            Self::StalePlanApplied => {
                "a plan is used as it is, although the situation moved on while it was made"
            }
            Self::NewestVersionOnly => {
                "a duty may run only as the newest version that anybody lists"
            }
            Self::OldStoppedBeforePrepared => {
                "a duty is taken from the old version before the new one is prepared for it"
            }
            Self::MoveForgotten => {
                "a duty whose new roster got lost on the way counts as one whose node is gone"
            }
            Self::AskedIsThere => {
                "a duty that can't go where an operator asked for counts as coming from there"
            }
            Self::FailedVersionStays => {
                "a duty that fails on a new version is left there, although the old one lives"
            }
            Self::RewritesSteadyView => {
                "the leader publishes the view at every review, changed or not"
            }
        }
    }
}

/// Which mistake is planted, if any. Without the feature `mutants` never one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Planted {
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl Planted {
    /// Plants a mistake.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub const fn new(mutant: Option<Mutant>) -> Self {
        Self { mutant }
    }

    /// Whether this one is planted.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn is(self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Whether this one is planted: never.
    #[cfg(not(feature = "mutants"))]
    #[must_use]
    #[inline(always)]
    pub const fn is(self, _: Mutant) -> bool {
        false
    }
}
