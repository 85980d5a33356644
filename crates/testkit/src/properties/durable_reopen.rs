use incumbent_core::store::{Expect, Key};

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str = "Records outlive the handles that wrote them";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let key = Key::new("lease/kept");
    let mut expect = Expect::Absent;
    for generation in 0..5 {
        let content = format!("{{\"generation\":{generation}}}");
        let writer = context.open().await?;
        let put = writer.put(&key, expect.clone(), content.as_bytes()).await?;
        drop(writer);
        let version = put.ok_or_else(|| {
            Violation::new(format!("after reopening, {key} is no longer at {expect:?}"))
        })?;
        let reader = context.open().await?;
        let found = reader.read(&key).await?;
        ensure!(
            found.is_some_and(|record| {
                record.version == version && record.value == content.as_bytes()
            }),
            "{key} was written as {version:?} and closed; after reopening it is not the same"
        );
        expect = Expect::Version(version);
    }
    Ok(())
}
