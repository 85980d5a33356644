use incumbent_core::store::Key;

use crate::{Context, Handle, Violation};

pub(super) const ABOUT: &str =
    "A lease's record outlives its release, so the term goes on from where it was (F8)";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handles = context.open_many(3).await?;
    let key = Key::new("lease/scheduler");
    let Some(first) = handles.first() else { return Ok(()) };
    first.create(&key, lease(1, Some("node-0")).as_bytes()).await?;
    let mut holders = handles.iter().cycle();
    for term in 1..context.rounds().max(5) as u64 {
        let (Some(holder), Some(next)) = (holders.next(), holders.clone().next()) else {
            return Ok(());
        };
        // One frees it, and another takes it over from what it finds.
        replace(holder, &key, &lease(term, Some(&name(term))), &lease(term, None)).await?;
        let (free, taken) = (lease(term, None), lease(term + 1, Some(&name(term + 1))));
        replace(next, &key, &free, &taken).await?;
    }
    Ok(())
}

async fn replace(handle: &Handle, key: &Key, from: &str, to: &str) -> Result<(), Violation> {
    let found = handle.read(key).await?;
    match found {
        Some(record) if record.value == from.as_bytes() => {
            handle.swap(key, &record.version, to.as_bytes()).await.map(drop)
        }
        found => Err(Violation::new(format!(
            "{key} was written as {from}, but found as {}",
            found.map_or("absent".into(), |record| {
                String::from_utf8_lossy(&record.value).into_owned()
            })
        ))),
    }
}

fn name(term: u64) -> String {
    format!("node-{}", (term - 1) % 3)
}

fn lease(term: u64, holder: Option<&str>) -> String {
    match holder {
        Some(holder) => format!(r#"{{"term":{term},"holder":"{holder}"}}"#),
        None => format!(r#"{{"term":{term},"holder":null}}"#),
    }
}
