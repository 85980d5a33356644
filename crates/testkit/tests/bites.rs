//! The kit bites: every mistake is caught by the property named for it, and by no property that
//! has nothing to do with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use incumbent_testkit::{Conformance, Faults, Mistake, ModelStore, Report, properties};

/// What may catch a mistake besides the property named for it, for one mistake often shows in
/// several ways.
fn also(mistake: Mistake) -> &'static [&'static str] {
    match mistake {
        Mistake::CreateOverwrites => {
            &["linearizable-history", "refused-leaves-record", "refused-undoes-nothing"]
        }
        Mistake::SwapIgnoresVersion => &[
            "refused-leaves-record",
            "refused-undoes-nothing",
            "stamps-as-attempts",
            "versions-never-repeat",
            "versions-survive-delete",
        ],
        Mistake::CheckThenAct => &["create-once", "linearizable-history"],
        Mistake::RefusalTouches => &[
            "create-once",
            "stamps-as-attempts",
            "swap-once",
            "versions-never-repeat",
            "versions-survive-delete",
        ],
        Mistake::VersionsFromContent => {
            &["stamps-as-attempts", "unless", "versions-survive-delete"]
        }
        Mistake::VersionsRestart => &["linearizable-history"],
        // Whoever reads the record that it has just written finds this out.
        Mistake::StaleReads => &[
            "batch",
            "beats-dont-hint",
            "dropped-future",
            "errors-tell-the-truth",
            "hint-guard-drop",
            "hints-arrive",
            "hostile-values",
            "linearizable-history",
            "refused-leaves-record",
            "refused-undoes-nothing",
            "swap-once",
            "terms-survive-release",
            "unless",
        ],
        Mistake::ReadsReversed => &["batch"],
        Mistake::KeysFoldCase => &["prefix-boundaries"],
        Mistake::ValuesCut => &["capabilities-honest"],
        Mistake::PushDeclared => &["beats-dont-hint", "hint-guard-drop", "hints-arrive"],
        // Silence proves nothing where nothing is ever heard.
        Mistake::HintsNever => &["beats-dont-hint", "hint-guard-drop"],
        Mistake::UnavailableThoughApplied => {
            &["beats-dont-hint", "lanes-independent", "linearizable-history", "swap-once"]
        }
        Mistake::RefusalUndoesAll
        | Mistake::SameContentKept
        | Mistake::ReleaseDeletes
        | Mistake::TornReads
        | Mistake::UnchangedAlways
        | Mistake::PrefixIsPattern
        | Mistake::PrefixTruncated
        | Mistake::PrefixUnordered
        | Mistake::ClustersShared
        | Mistake::ClustersJoined
        | Mistake::ValuesReprinted
        | Mistake::BatchTruncated
        | Mistake::DeleteNeedsRecord
        | Mistake::BeatsHint
        | Mistake::GuardIgnored
        | Mistake::LanesShared
        | Mistake::DropKeepsConnection
        | Mistake::AgeFrozen
        | Mistake::ForgetsOnClose => &[],
    }
}

async fn report(mistake: Mistake, faults: Option<Faults>) -> Report {
    let conformance = conformance(mistake).seed(1);
    match faults {
        Some(faults) => conformance.faults(faults).run().await,
        None => conformance.run().await,
    }
}

async fn only(mistake: Mistake, seed: u64) -> Report {
    conformance(mistake).seed(seed).only([mistake.caught_by()]).run().await
}

fn conformance(mistake: Mistake) -> Conformance {
    let store = ModelStore::mistaken(mistake);
    Conformance::new(move || {
        let handle = store.clone();
        async move { Ok(Arc::new(handle)) }
    })
}

#[tokio::test(start_paused = true)]
async fn every_mistake_is_caught_by_its_property() {
    let mut wrong = Vec::new();
    for mistake in Mistake::ALL {
        let report = report(mistake, None).await;
        let failed: BTreeSet<_> = report.failed().map(|row| row.property).collect();
        let mut expected: BTreeSet<_> = also(mistake).iter().copied().collect();
        expected.insert(mistake.caught_by());
        if failed != expected {
            wrong.push(format!("{mistake:?}: {failed:?} instead of {expected:?}\n{report}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Faults excuse nothing: behind them, too, the mistakes that make two leaders are found.
#[tokio::test(start_paused = true)]
async fn mistakes_are_caught_behind_faults() {
    for mistake in [
        Mistake::CreateOverwrites,
        Mistake::SwapIgnoresVersion,
        Mistake::CheckThenAct,
        Mistake::VersionsFromContent,
        Mistake::VersionsRestart,
        Mistake::ReleaseDeletes,
        Mistake::StaleReads,
        Mistake::UnavailableThoughApplied,
    ] {
        let report = report(mistake, Some(Faults::mixed(3))).await;
        let caught = report.failed().any(|row| row.property == mistake.caught_by());
        assert!(caught, "{mistake:?} went unnoticed\n{report}");
    }
}

/// Luck has no part in it: other seeds catch the same.
#[tokio::test(start_paused = true)]
async fn any_seed_catches() {
    for seed in 10..16 {
        for mistake in Mistake::ALL {
            let report = only(mistake, seed).await;
            assert_eq!(report.failed().count(), 1, "{mistake:?} with seed {seed}\n{report}");
        }
    }
}

/// Real threads race no less than a runtime that takes turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_catch_the_race() {
    for mistake in [Mistake::CheckThenAct, Mistake::TornReads] {
        let report = only(mistake, 1).await;
        assert_eq!(report.failed().count(), 1, "{mistake:?}\n{report}");
    }
}

#[test]
fn every_mistake_names_a_property() {
    let names: BTreeSet<_> = properties().iter().map(|property| property.name).collect();
    let caught: BTreeSet<_> = Mistake::ALL.into_iter().map(Mistake::caught_by).collect();
    assert_eq!(names, caught, "every property has a mistake that it catches");
    assert_eq!(Mistake::ALL.into_iter().collect::<BTreeSet<_>>().len(), Mistake::ALL.len());
}
