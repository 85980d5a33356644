use std::time::Duration;

use incumbent_core::store::Key;

use crate::violation::ensure;
use crate::{Context, Handle, Violation};

pub(super) const ABOUT: &str = "Records grow older, and a write makes them young again";

const PAUSE: Duration = Duration::from_millis(2_200);

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, reader) = (context.open().await?, context.open().await?);
    let key = Key::new("member/aging");
    let version = handle.create(&key, b"{}").await?;
    let young = age(&reader, &key).await?;
    ensure!(young < Duration::from_secs(10), "a record just created is {young:?} old");
    tokio::time::sleep(PAUSE).await;
    let old = age(&reader, &key).await?;
    // A clock may count whole seconds.
    let grown = old.saturating_sub(young);
    ensure!(grown >= Duration::from_secs(1), "in {PAUSE:?} a record grew {grown:?} older");
    ensure!(grown < Duration::from_secs(60), "in {PAUSE:?} a record grew {grown:?} older");
    handle.swap(&key, &version, b"{}").await?;
    let again = age(&reader, &key).await?;
    ensure!(again < old, "a record was {old:?} old, then written, and is {again:?} old");
    let listed = reader.list(&key).await?;
    let aged = listed.iter().all(|record| record.age.is_some());
    ensure!(aged, "records of a prefix read carry no age, though the store declares a clock");
    Ok(())
}

async fn age(reader: &Handle, key: &Key) -> Result<Duration, Violation> {
    let record = reader.read(key).await?;
    let age = record.and_then(|record| record.age);
    age.ok_or_else(|| Violation::new("a record has no age, though the store declares a clock"))
}
