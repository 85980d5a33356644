use incumbent_core::store::{Exchange, Key, Lane, Outcome, Write};

use crate::violation::ensure;
use crate::{Context, Handle, Violation};

pub(super) const ABOUT: &str =
    "A prefix read gives all records however many, never a part of them (F35)";

/// More than the pages of any store, in count and in bytes.
const RECORDS: usize = 1_203;
const PADDING: usize = 1_000;

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, reader) = (context.open().await?, context.open().await?);
    let keys: Vec<_> = (0..RECORDS).map(|n| Key::new(&format!("member/{n:05}"))).collect();
    let padding = "x".repeat(PADDING);
    for some in keys.chunks(context.capabilities().max_operations.clamp(1, 100)) {
        create_all(&handle, some, &padding).await?;
    }
    handle.create(&Key::new("member0"), b"{}").await?;
    handle.create(&Key::new("lease/a"), b"{}").await?;
    let found = reader.list(&Key::new("member/")).await?;
    ensure!(found.len() == RECORDS, "of {RECORDS} records a prefix read gave {}", found.len());
    ensure!(
        found.iter().map(|record| &record.key).eq(&keys),
        "a prefix read of {RECORDS} records gave some twice or in disorder"
    );
    for (n, record) in found.iter().enumerate() {
        let whole = record.value == content(n, &padding);
        ensure!(whole, "the record {} came back with other content", record.key);
    }
    let some = reader.list(&Key::new("member/010")).await?;
    ensure!(some.len() == 100, "of 100 records a prefix read gave {}", some.len());
    Ok(())
}

async fn create_all(handle: &Handle, keys: &[Key], padding: &str) -> Result<(), Violation> {
    let writes = keys.iter().map(|key| {
        let number = key.as_str().trim_start_matches("member/").parse().unwrap_or(0);
        Write::Put(handle.creation(key, &content(number, padding)))
    });
    let exchange = Exchange { writes: writes.collect(), reads: Vec::new() };
    let reply = handle.exchange(Lane::Change, exchange).await?;
    let applied = reply.writes.iter().all(|outcome| matches!(outcome, Outcome::Applied(_)));
    ensure!(applied, "of {} creations in one exchange some were refused", keys.len());
    Ok(())
}

fn content(number: usize, padding: &str) -> Vec<u8> {
    format!("{{\"n\":{number},\"padding\":\"{padding}\"}}").into_bytes()
}
