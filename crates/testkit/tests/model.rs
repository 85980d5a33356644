//! The kit passes on a store that is right.

use std::sync::Arc;

use incumbent_testkit::{Conformance, Fault, Faults, ModelStore, Progress, properties};

fn conformance() -> Conformance {
    let store = ModelStore::sound();
    Conformance::new(move || {
        let handle = store.clone();
        async move { Ok(Arc::new(handle)) }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sound_store_passes() {
    let report = conformance().run().await;
    println!("{report}");
    report.assert_passed();
    let skipped: Vec<_> = report.skipped().map(|row| row.property).collect();
    assert_eq!(skipped, ["age-plausible", "durable-reopen"], "skips are reported openly");
    assert_eq!(report.rows.len(), properties().len());
    assert!(report.rows.iter().all(|row| row.errors == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sound_store_passes_behind_faults() {
    let report = conformance().faults(Faults::mixed(7)).run().await;
    println!("{report}");
    report.assert_passed();
    let struck = report.faults.expect("faults are counted");
    for fault in [
        Fault::Unavailable,
        Fault::Unsent,
        Fault::Unacknowledged,
        Fault::Silent,
        Fault::Late,
        Fault::Repeated,
        Fault::Delayed,
        Fault::Reordered,
    ] {
        assert!(struck.get(&fault).is_some_and(|count| *count > 0), "{fault:?} never struck");
    }
}

/// Different seeds ask in different orders; none of them may call a right store wrong.
#[tokio::test(start_paused = true)]
async fn sound_store_passes_from_any_seed() {
    for seed in 0..12 {
        let plain = conformance().seed(seed).rounds(12);
        plain.run().await.assert_passed();
        let faulty = conformance().seed(seed).rounds(12).faults(Faults::mixed(seed));
        faulty.run().await.assert_passed();
    }
}

#[tokio::test(start_paused = true)]
async fn some_alone() {
    let report = conformance().only(["unless", "batch"]).run().await;
    let names: Vec<_> = report.rows.iter().map(|row| row.property).collect();
    assert_eq!(names, ["unless", "batch"]);
}

#[tokio::test(start_paused = true)]
async fn progress_is_told() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let progress = move |progress: Progress<'_>| {
        log.lock().unwrap().push(match progress {
            Progress::Started(property) => format!("+{}", property.name),
            Progress::Ended(row) => format!("-{}", row.property),
        });
    };
    conformance().only(["unless"]).on_progress(progress).run().await.assert_passed();
    assert_eq!(*told.lock().unwrap(), ["+unless", "-unless"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_open_fails() {
    let opener = || async {
        Err::<Arc<ModelStore>, _>(incumbent_core::store::StoreError::rejected("no such file"))
    };
    let report = Conformance::new(opener).run().await;
    assert!(!report.is_passed());
    assert!(report.to_string().contains("no such file"), "{report}");
}

#[test]
fn names_are_unique_and_readable() {
    let names: std::collections::BTreeSet<_> = properties().iter().map(|it| it.name).collect();
    assert_eq!(names.len(), properties().len());
    let readable = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    assert!(names.iter().all(|name| readable(name)));
    assert!(properties().iter().all(|it| !it.about.is_empty() && it.about.len() < 100));
}
