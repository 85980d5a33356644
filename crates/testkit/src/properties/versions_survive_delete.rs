use std::collections::BTreeSet;

use incumbent_core::store::{Expect, Key, Version};

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str =
    "A record deleted and created again has no version that it had before (F8)";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, other) = (context.open().await?, context.open().await?);
    let key = Key::new("member/again");
    let mut past: BTreeSet<Version> = BTreeSet::new();
    for life in 0..context.rounds().clamp(3, 12) {
        let mut version = handle.create(&key, b"{\"beat\":0}").await?;
        for beat in 1..4 {
            for old in &past {
                let late = other.put(&key, Expect::Version(old.clone()), b"{\"late\":1}").await?;
                ensure!(
                    late.is_none(),
                    "in its life {life} the record {key} was swapped by the version {old:?} of a life before"
                );
            }
            ensure!(
                past.insert(version.clone()),
                "in its life {life} the record {key} got the version {version:?} again"
            );
            version =
                handle.swap(&key, &version, format!("{{\"beat\":{beat}}}").as_bytes()).await?;
        }
        past.insert(version);
        other.delete(&key).await?;
    }
    Ok(())
}
