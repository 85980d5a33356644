use incumbent_core::store::{Expect, Key, Record, Version};

use crate::violation::ensure;
use crate::{Context, Handle, Violation, shown};

pub(super) const ABOUT: &str =
    "A refused write changes neither content nor version, and creates nothing";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, judge) = (context.open().await?, context.open_clean().await?);
    let key = Key::new("lease/kept");
    let mut old = handle.create(&key, b"{\"n\":0}").await?;
    for round in 1..=10 {
        let now = handle.swap(&key, &old, format!("{{\"n\":{round}}}").as_bytes()).await?;
        let kept = judge.read(&key).await?;
        for expect in [Expect::Absent, Expect::Version(old.clone())] {
            let refused = handle.put(&key, expect.clone(), b"{\"wrong\":1}").await?;
            ensure!(
                refused.is_none(),
                "{key} is at {now:?}, yet a write applied that expected {expect:?}"
            );
            same(&judge, &key, kept.as_ref()).await?;
        }
        on_absent(&handle, &judge, round, &now).await?;
        old = now;
    }
    Ok(())
}

/// Swapping what isn't there is refused, and brings nothing into being.
async fn on_absent(
    handle: &Handle,
    judge: &Handle,
    round: usize,
    version: &Version,
) -> Result<(), Violation> {
    let key = Key::new(&format!("lease/absent-{round}"));
    let put = handle.put(&key, Expect::Version(version.clone()), b"{}").await?;
    ensure!(put.is_none(), "a swap of {key} applied, though there is no such record");
    same(judge, &key, None).await
}

async fn same(judge: &Handle, key: &Key, kept: Option<&Record>) -> Result<(), Violation> {
    let found = judge.read(key).await?;
    let essence = |record: &Record| (record.version.clone(), record.value.clone());
    ensure!(
        found.as_ref().map(essence) == kept.map(essence),
        "a refused write turned {} into {}",
        shown::maybe(kept),
        shown::maybe(found.as_ref())
    );
    Ok(())
}
