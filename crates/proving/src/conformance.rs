//! The conformance kit on real stores: plainly, behind faults, and with connections that break.

use std::pin::Pin;
use std::sync::Arc;

use incumbent_core::store::{Store, StoreError};
use incumbent_testkit::{Conformance, Faults, Opener, Opening, Report};

struct Breaking<O, D> {
    opener: O,
    disturb: D,
}

impl<O, D, F> Opener for Breaking<O, D>
where
    O: Opener,
    D: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    fn open(&self) -> Opening<'_> {
        self.opener.open()
    }

    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin((self.disturb)())
    }
}

/// Opens stores at a URL.
pub fn at<F, S>(url: String, connect: fn(String) -> F) -> impl Opener
where
    F: Future<Output = Result<S, StoreError>> + Send + 'static,
    S: Store + 'static,
{
    move || {
        let opening = connect(url.clone());
        async move { opening.await.map(Arc::new) }
    }
}

/// The kit, plainly and over a path that fails.
///
/// # Panics
///
/// If the store doesn't pass.
pub async fn conforms(open: impl Fn() -> Conformance) {
    passed(open()).await;
    passed(open().faults(Faults::mixed(7))).await;
}

/// The part of the kit that is about errors, on stores whose connections `disturb` breaks.
///
/// # Panics
///
/// If the store doesn't pass, or no errors were seen.
pub async fn conforms_while_broken<D, F>(opener: impl Opener, rounds: usize, disturb: D)
where
    D: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    let kit = Conformance::new(Breaking { opener, disturb }).only(["errors-tell-the-truth"]);
    let report = passed(kit.rounds(rounds)).await;
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

/// Runs the kit.
///
/// # Panics
///
/// If the store doesn't pass.
pub async fn passed(conformance: Conformance) -> Report {
    let report = conformance.run().await;
    println!("{report}");
    report.assert_passed();
    report
}
