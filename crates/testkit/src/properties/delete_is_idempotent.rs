use incumbent_core::store::Key;

use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str =
    "Deleting needs no version, removes for everyone, and succeeds on what is absent";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, other) = (context.open().await?, context.open().await?);
    let neighbour = Key::new("member/gone-not");
    handle.create(&neighbour, b"{}").await?;
    for round in 0..5 {
        let key = Key::new("member/gone");
        handle.delete(&key).await?;
        handle.create(&key, format!("{{\"n\":{round}}}").as_bytes()).await?;
        other.delete(&key).await?;
        for reader in [&handle, &other] {
            ensure!(reader.read(&key).await?.is_none(), "{key} was deleted and is still there");
            let listed = reader.list(&key).await?;
            ensure!(
                listed.iter().map(|record| &record.key).eq([&neighbour]),
                "{key} was deleted, but a prefix read gives {} records instead of its neighbour",
                listed.len()
            );
        }
        handle.delete(&key).await?;
        other.delete(&key).await?;
    }
    Ok(())
}
