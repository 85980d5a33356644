use incumbent_core::store::{
    Exchange, Expect, Found, Key, Lane, Outcome, Read, Reply, Version, Write,
};

use crate::violation::ensure;
use crate::{Context, Handle, Violation, shown};

pub(super) const ABOUT: &str =
    "One exchange holds as many operations as declared (up to 1,000 tried), all done";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, reader) = (context.open().await?, context.open().await?);
    let most = context.capabilities().max_operations.min(1_000);
    let keys: Vec<_> = (0..most).map(|n| Key::new(&format!("lease/{n:04}"))).collect();
    let puts = |expects: &[Expect], value: &[u8]| -> Vec<Write> {
        let pairs = keys.iter().zip(expects);
        pairs
            .map(|(key, expect)| Write::Put(handle.replacement(key, expect.clone(), value)))
            .collect()
    };

    let creations = puts(&vec![Expect::Absent; most], b"{\"n\":1}");
    let created = applied(&send(&handle, creations, Vec::new()).await?)?;
    present(&reader, &keys, &created).await?;

    let expects: Vec<_> = created.into_iter().map(Expect::Version).collect();
    let swapped = applied(&send(&handle, puts(&expects, b"{\"n\":2}"), Vec::new()).await?)?;
    present(&reader, &keys, &swapped).await?;

    // Writes and reads share the limit.
    let half = most / 2;
    let deletes = keys.iter().take(most - half).map(|key| Write::Delete(key.clone())).collect();
    let reply = send(&handle, deletes, asks(keys.get(most - half..).unwrap_or_default())).await?;
    ensure!(
        reply.writes.iter().all(|outcome| *outcome == Outcome::Deleted),
        "of {} deletes in one exchange some were refused",
        most - half
    );
    let left = reader.list(&Key::new("lease/")).await?.len();
    ensure!(left == half, "{half} of {most} records should be left, but there are {left}");
    Ok(())
}

async fn send(handle: &Handle, writes: Vec<Write>, reads: Vec<Read>) -> Result<Reply, Violation> {
    let count = writes.len() + reads.len();
    let sent = handle.exchange(Lane::Change, Exchange { writes, reads }).await;
    sent.map_err(|violation| Violation::new(format!("with {count} operations {violation}")))
}

fn applied(reply: &Reply) -> Result<Vec<Version>, Violation> {
    let versions = reply.writes.iter().enumerate().map(|(place, outcome)| match outcome {
        Outcome::Applied(version) => Ok(version.clone()),
        Outcome::Refused | Outcome::Deleted => {
            Err(Violation::new(format!("write {place} of {} was refused", reply.writes.len())))
        }
    });
    versions.collect()
}

/// Asks for all of the keys in one exchange.
async fn present(reader: &Handle, keys: &[Key], versions: &[Version]) -> Result<(), Violation> {
    let reply = send(reader, Vec::new(), asks(keys)).await?;
    for ((key, version), found) in keys.iter().zip(versions).zip(&reply.reads) {
        ensure!(
            matches!(found, Found::Record(record) if record.version == *version),
            "{key}, one of {} in an exchange, was acknowledged as {version:?} but found as {}",
            keys.len(),
            shown::found(found)
        );
    }
    Ok(())
}

fn asks(keys: &[Key]) -> Vec<Read> {
    keys.iter().map(|key| Read::Key { key: key.clone(), unless: None }).collect()
}
