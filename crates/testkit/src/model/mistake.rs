/// A mistake that a [`super::ModelStore`] makes on purpose. Published libraries and first drafts
/// of stores made most of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mistake {
    /// Creating overwrites what is there.
    CreateOverwrites,
    /// A swap doesn't compare versions: a renewal by anyone succeeds (F1).
    SwapIgnoresVersion,
    /// A swap compares first and writes later: two candidates that both see an expired lease
    /// both win.
    CheckThenAct,
    /// A refused swap still gives the record a new version.
    RefusalTouches,
    /// All writes of an exchange share a transaction that one refusal rolls back.
    RefusalUndoesAll,
    /// Versions are hashes of the content, so they come back with it.
    VersionsFromContent,
    /// Versions count from one again after a delete (F8).
    VersionsRestart,
    /// A write of the same content is left out, and the old version returned.
    SameContentKept,
    /// A record that names no holder is deleted: the token starts again after a release (F8).
    ReleaseDeletes,
    /// Some reads come from a replica that is one write behind (F32).
    StaleReads,
    /// Version and content are read one after the other.
    TornReads,
    /// Findings come in another order than the questions.
    ReadsReversed,
    /// Whoever has any version is told that nothing changed.
    UnchangedAlways,
    /// A prefix is a pattern: `_` matches everything.
    PrefixIsPattern,
    /// A prefix read ends after 1,000 records and doesn't say so (F35).
    PrefixTruncated,
    /// Records of a prefix come in no useful order.
    PrefixUnordered,
    /// Clusters share their records.
    ClustersShared,
    /// Cluster and key are joined by a slash that may occur in both.
    ClustersJoined,
    /// Keys that differ in case alone are the same.
    KeysFoldCase,
    /// Values end after 65,535 bytes, as in a column too small.
    ValuesCut,
    /// Values are parsed and printed again, without their blanks.
    ValuesReprinted,
    /// Writes past the hundredth of an exchange are acknowledged and forgotten.
    BatchTruncated,
    /// Deleting what is absent is refused.
    DeleteNeedsRecord,
    /// It declares hints and has none.
    PushDeclared,
    /// Hints never come: a misspelt channel (F22).
    HintsNever,
    /// Every write hints, beats too (F48).
    BeatsHint,
    /// Hints come even after the guard was dropped.
    GuardIgnored,
    /// The beat waits in line behind everything else (F17).
    LanesShared,
    /// An exchange that is dropped half-way keeps its connection for ever (F18).
    DropKeepsConnection,
    /// Ages stand still.
    AgeFrozen,
    /// Records are gone when the last handle is.
    ForgetsOnClose,
    /// An error after a beat was applied says that nothing was.
    UnavailableThoughApplied,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 32] = [
        Self::CreateOverwrites,
        Self::SwapIgnoresVersion,
        Self::CheckThenAct,
        Self::RefusalTouches,
        Self::RefusalUndoesAll,
        Self::VersionsFromContent,
        Self::VersionsRestart,
        Self::SameContentKept,
        Self::ReleaseDeletes,
        Self::StaleReads,
        Self::TornReads,
        Self::ReadsReversed,
        Self::UnchangedAlways,
        Self::PrefixIsPattern,
        Self::PrefixTruncated,
        Self::PrefixUnordered,
        Self::ClustersShared,
        Self::ClustersJoined,
        Self::KeysFoldCase,
        Self::ValuesCut,
        Self::ValuesReprinted,
        Self::BatchTruncated,
        Self::DeleteNeedsRecord,
        Self::PushDeclared,
        Self::HintsNever,
        Self::BeatsHint,
        Self::GuardIgnored,
        Self::LanesShared,
        Self::DropKeepsConnection,
        Self::AgeFrozen,
        Self::ForgetsOnClose,
        Self::UnavailableThoughApplied,
    ];

    /// The name of the property that catches it.
    #[must_use]
    pub fn caught_by(self) -> &'static str {
        match self {
            Self::CreateOverwrites => "create-once",
            Self::SwapIgnoresVersion | Self::CheckThenAct => "swap-once",
            Self::RefusalTouches => "refused-leaves-record",
            Self::RefusalUndoesAll => "refused-undoes-nothing",
            Self::VersionsFromContent => "versions-never-repeat",
            Self::VersionsRestart => "versions-survive-delete",
            Self::SameContentKept => "stamps-as-attempts",
            Self::ReleaseDeletes => "terms-survive-release",
            Self::StaleReads => "reads-see-writes",
            Self::TornReads => "linearizable-history",
            Self::ReadsReversed => "reads-in-order",
            Self::UnchangedAlways => "unless",
            Self::PrefixIsPattern | Self::PrefixUnordered => "prefix-boundaries",
            Self::PrefixTruncated => "prefix-complete",
            Self::ClustersShared | Self::ClustersJoined => "clusters-apart",
            Self::KeysFoldCase => "hostile-keys",
            Self::ValuesCut | Self::ValuesReprinted => "hostile-values",
            Self::BatchTruncated => "batch",
            Self::DeleteNeedsRecord => "delete-is-idempotent",
            Self::PushDeclared => "capabilities-honest",
            Self::HintsNever => "hints-arrive",
            Self::BeatsHint => "beats-dont-hint",
            Self::GuardIgnored => "hint-guard-drop",
            Self::LanesShared => "lanes-independent",
            Self::DropKeepsConnection => "dropped-future",
            Self::AgeFrozen => "age-plausible",
            Self::ForgetsOnClose => "durable-reopen",
            Self::UnavailableThoughApplied => "errors-tell-the-truth",
        }
    }
}
