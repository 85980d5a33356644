use incumbent_core::store::{Found, Key, Lane, Read, Version};

use crate::violation::ensure;
use crate::{Context, Handle, Rng, Violation};

pub(super) const ABOUT: &str = "Findings come in the order of the questions, whatever their sorts";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handle = context.open().await?;
    let mut rng = context.rng();
    let mut records = Vec::new();
    for place in 0..6 {
        let key = Key::new(&format!("lease/{place}"));
        let version = handle.create(&key, format!("{{\"n\":{place}}}").as_bytes()).await?;
        records.push((key, version));
    }
    for _ in 0..context.rounds() {
        let most = context.capabilities().max_operations.clamp(1, 12);
        let reads = (0..most).map(|_| question(&records, &mut rng)).collect();
        asked(&handle, &records, reads).await?;
    }
    Ok(())
}

fn question(records: &[(Key, Version)], rng: &mut Rng) -> Read {
    let Some((key, version)) = rng.pick(records).cloned() else {
        return Read::Prefix(Key::new("lease/"));
    };
    match rng.below(5) {
        0 => Read::Prefix(Key::new("lease/")),
        1 => Read::Prefix(key),
        2 => Read::Key { key, unless: Some(version) },
        3 => Read::Key { key: Key::new("lease/absent"), unless: None },
        _ => Read::Key { key, unless: None },
    }
}

async fn asked(
    handle: &Handle,
    records: &[(Key, Version)],
    reads: Vec<Read>,
) -> Result<(), Violation> {
    let found = handle.ask_all(Lane::Watch, reads.clone()).await?;
    for (place, (read, found)) in reads.iter().zip(&found).enumerate() {
        let right = match (read, found) {
            (Read::Prefix(prefix), Found::Records(found)) => {
                let wanted =
                    records.iter().filter(|(key, _)| key.as_str().starts_with(prefix.as_str()));
                found.iter().map(|record| &record.key).eq(wanted.map(|(key, _)| key))
            }
            (Read::Key { unless: Some(_), .. }, Found::Unchanged) => true,
            (Read::Key { key, unless: None }, Found::Absent) => key.as_str() == "lease/absent",
            (Read::Key { key, unless: None }, Found::Record(record)) => record.key == *key,
            _ => false,
        };
        ensure!(right, "question {place} of {}, {read:?}, got another's answer", reads.len());
    }
    Ok(())
}
