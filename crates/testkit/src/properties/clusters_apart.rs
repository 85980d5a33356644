use std::collections::BTreeSet;

use incumbent_core::store::Key;

use crate::violation::ensure;
use crate::{Context, Handle, Violation};

pub(super) const ABOUT: &str = "Clusters never see each other's records, whatever their names";

/// What follows the scratch cluster's name. Some differ in case alone, in how an accent is
/// composed or in a blank at the end; some mean something to a query language, a shell, a path
/// or a subject; some would be mixed up with a key of another cluster if joined carelessly.
const SUFFIXES: [&str; 33] = [
    "",
    "a",
    "A",
    "b",
    "_",
    "%",
    "*",
    ">",
    ".",
    "..",
    "/",
    "/x",
    "/x/",
    "x/y",
    ":",
    ":x",
    "-x",
    " ",
    "  ",
    " x",
    "'",
    "''",
    "\"",
    "\\",
    "\\'",
    "`",
    "; DROP TABLE records; --",
    "${HOME}",
    "é",
    "e\u{301}",
    "ß",
    "日本語",
    "🦀",
];

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let handle = context.open().await?;
    let long = format!("-{}", "long".repeat(30));
    let longer = format!("{long}er");
    let suffixes = SUFFIXES.into_iter().chain([long.as_str(), longer.as_str()]);
    let clusters: Vec<_> = suffixes.map(|suffix| handle.within(&context.scratch(suffix))).collect();
    let keys = ["lease/a", "x/lease/a", "y"].map(Key::new);
    for (place, cluster) in clusters.iter().enumerate() {
        for key in &keys {
            let created = cluster.create(key, content(place, key).as_bytes()).await;
            created.map_err(|violation| seen(cluster, &violation))?;
        }
    }
    for (place, cluster) in clusters.iter().enumerate() {
        own_alone(cluster, place, &keys).await?;
    }
    // What one deletes, the others keep.
    for (place, cluster) in clusters.iter().enumerate() {
        for key in &keys {
            cluster.delete(key).await?;
        }
        ensure!(
            cluster.list(&Key::new("")).await?.is_empty(),
            "the cluster {:?} isn't empty after its records were deleted",
            cluster.cluster()
        );
        if let Some(next) = clusters.get(place + 1) {
            own_alone(next, place + 1, &keys).await?;
        }
    }
    Ok(())
}

async fn own_alone(cluster: &Handle, place: usize, keys: &[Key]) -> Result<(), Violation> {
    let name = cluster.cluster();
    for key in keys {
        let found = cluster.read(key).await?.map(|record| record.value);
        ensure!(
            found == Some(content(place, key).into_bytes()),
            "the cluster {name:?} has lost its record {key}, or sees another's"
        );
    }
    let listed = cluster.list(&Key::new("")).await?;
    let listed: BTreeSet<_> = listed.iter().map(|record| &record.key).collect();
    ensure!(
        listed.iter().copied().eq(keys),
        "the cluster {name:?} has the records {keys:?}, but sees {listed:?}"
    );
    Ok(())
}

fn content(place: usize, key: &Key) -> String {
    format!("{{\"cluster\":{place},\"key\":\"{key}\"}}")
}

fn seen(cluster: &Handle, violation: &Violation) -> Violation {
    Violation::new(format!("in the new cluster {:?}: {violation}", cluster.cluster()))
}
