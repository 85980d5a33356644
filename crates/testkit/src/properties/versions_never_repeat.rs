use std::collections::BTreeSet;

use incumbent_core::store::{Expect, Key};

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str =
    "Content that comes back has a new version, and its old one no longer matches";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handles = context.open_many(2).await?;
    let key = Key::new("lease/again");
    let contents: [&[u8]; 2] = [b"{\"holder\":\"a\"}", b"{\"holder\":\"b\"}"];
    let mut past = BTreeSet::new();
    let mut expect = Expect::Absent;
    for (turn, (content, handle)) in contents
        .iter()
        .cycle()
        .zip(handles.iter().cycle())
        .take(context.rounds().max(6))
        .enumerate()
    {
        let put = handle.put(&key, expect.clone(), content).await?;
        let version = put.ok_or_else(|| {
            Violation::new(format!(
                "write {turn} was refused, though it expected {expect:?} rightly"
            ))
        })?;
        for old in past.iter().rev().take(4) {
            let late =
                handle.put(&key, Expect::Version(Clone::clone(old)), b"{\"late\":1}").await?;
            ensure!(late.is_none(), "{key} is at {version:?}, yet a swap of {old:?} applied");
        }
        ensure!(
            past.insert(version.clone()),
            "write {turn} gave {key} the version {version:?} again"
        );
        expect = Expect::Version(version);
    }
    Ok(())
}
