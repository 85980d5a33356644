use incumbent_core::store::{Found, Key, Lane, Read, Version};

use crate::violation::ensure;
use crate::{Context, Handle, Violation, shown};

pub(super) const ABOUT: &str =
    "A reader is told that nothing changed exactly if it has the very version";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, reader) = (context.open().await?, context.open().await?);
    for round in 0..5 {
        let key = Key::new(&format!("board/{round}"));
        let first = handle.create(&key, b"{\"n\":1}").await?;
        unchanged(&reader, &key, &first).await?;
        let second = handle.swap(&key, &first, b"{\"n\":2}").await?;
        changed(&reader, &key, &first, &second).await?;
        unchanged(&reader, &key, &second).await?;
        // The content is back, the version isn't.
        let third = handle.swap(&key, &second, b"{\"n\":1}").await?;
        changed(&reader, &key, &first, &third).await?;
        changed(&reader, &key, &second, &third).await?;
        handle.delete(&key).await?;
        let found = ask(&reader, &key, &third).await?;
        ensure!(
            found == Found::Absent,
            "{key} is deleted, but unless {third:?} found {}",
            shown::found(&found)
        );
    }
    Ok(())
}

async fn ask(reader: &Handle, key: &Key, unless: &Version) -> Result<Found, Violation> {
    let (key, unless) = (key.clone(), Some(unless.clone()));
    reader.ask(Lane::Watch, Read::Key { key, unless }).await
}

async fn unchanged(reader: &Handle, key: &Key, version: &Version) -> Result<(), Violation> {
    let found = ask(reader, key, version).await?;
    ensure!(
        found == Found::Unchanged,
        "{key} is at {version:?}, but unless that found {}",
        shown::found(&found)
    );
    Ok(())
}

async fn changed(
    reader: &Handle,
    key: &Key,
    unless: &Version,
    now: &Version,
) -> Result<(), Violation> {
    let found = ask(reader, key, unless).await?;
    ensure!(
        matches!(&found, Found::Record(record) if record.version == *now),
        "{key} went from {unless:?} to {now:?}, but unless the former found {}",
        shown::found(&found)
    );
    Ok(())
}
