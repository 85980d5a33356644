//! The conformance kit on stores whose connections break.

use std::pin::Pin;

use incumbent_testkit::{Conformance, Opener, Opening, Report};

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

/// Opens stores as this one does, whose connections `disturb` breaks.
pub fn breaking<D, F>(opener: impl Opener, disturb: D) -> impl Opener
where
    D: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    Breaking { opener, disturb }
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
