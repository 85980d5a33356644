use std::collections::BTreeSet;

use incumbent_core::store::Key;

use crate::violation::ensure;
use crate::{Context, Rng, Violation};

pub(super) const ABOUT: &str =
    "Keys of letters, digits, _ / = and - up to 220 bytes are told apart to the last bit";

const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/=-";
const LONGEST: usize = 220;

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, reader) = (context.open().await?, context.open().await?);
    let keys = keys(&mut context.rng());
    for key in &keys {
        let created = handle.create(&Key::new(key), content(key).as_bytes()).await;
        created.map_err(|violation| Violation::new(format!("the new key {key}: {violation}")))?;
    }
    for key in &keys {
        let found = reader.read(&Key::new(key)).await?.map(|record| record.value);
        ensure!(
            found == Some(content(key).into_bytes()),
            "under {key} is {:?}",
            found.map(|value| String::from_utf8_lossy(&value).into_owned())
        );
    }
    let listed = reader.list(&Key::new("")).await?;
    let listed: BTreeSet<_> = listed.iter().map(|record| record.key.to_string()).collect();
    let missing: Vec<_> = keys.symmetric_difference(&listed).collect();
    ensure!(missing.is_empty(), "written but not listed, or the other way around: {missing:?}");
    Ok(())
}

fn keys(rng: &mut Rng) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> =
        ["lease/Job", "lease/job", "LEASE/JOB", "-", "=", "_", "a-", "-a", "a--b", "a=b", "a_b"]
            .into_iter()
            .chain(["lease/=27=3B=20DROP", "lease//a", "lease/a/", "/a", "0", "00", "null", "1e3"])
            .map(str::to_owned)
            .collect();
    keys.extend(ALPHABET.chars().map(|letter| format!("letter/{letter}")));
    // As long as may be, and different in the last byte alone.
    keys.extend(["a", "A", "b", "_"].map(|end| format!("lease/{}{end}", "k".repeat(LONGEST - 7))));
    let alphabet: Vec<_> = ALPHABET.chars().collect();
    for _ in 0..20 {
        let length = 1 + rng.below(LONGEST);
        keys.insert((0..length).filter_map(|_| rng.pick(&alphabet)).collect());
    }
    keys
}

fn content(key: &str) -> String {
    format!("{{\"key\":\"{key}\"}}")
}
