use incumbent_core::store::{ErrorKind, Exchange, Found, Key, Lane, Read, Record};

use crate::violation::ensure;
use crate::{Context, Handle, Violation, shown};

pub(super) const ABOUT: &str =
    "A prefix read gives all that starts so, nothing else, in the order of the bytes";

const KEYS: [&str; 20] = [
    "lease/b",
    "lease",
    "leasex",
    "lease/a",
    "lease/a/b",
    "lease/A",
    "lease/_",
    "lease/zz",
    "lease0",
    "lease-",
    "lease=2F",
    "lease_/a",
    "leaseX/a",
    "Lease/a",
    "LEASE/a",
    "member/1",
    "member/10",
    "member/2",
    "z",
    "0",
];

const PREFIXES: [&str; 16] = [
    "lease/",
    "lease",
    "lease/a",
    "lease/a/",
    "lease_",
    "lease_/",
    "_",
    "l",
    "lease/z",
    "lease=",
    "Lease/",
    "member/1",
    "member/",
    "absent/",
    "lease/abc",
    "",
];

/// These can't occur in keys, so nothing starts with them. A store may also say that it won't
/// look for such a thing.
const PATTERNS: [&str; 7] = ["%", "*", "lease/%", "lease/*", "lease/?", "lease/[a-z]", "lease/."];

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, reader) = (context.open().await?, context.open().await?);
    ensure!(reader.list(&Key::new("")).await?.is_empty(), "a new cluster has records");
    for key in KEYS {
        handle.create(&Key::new(key), format!("{{\"key\":\"{key}\"}}").as_bytes()).await?;
    }
    for prefix in PREFIXES {
        let found = reader.list(&Key::new(prefix)).await?;
        let mut wanted: Vec<_> = KEYS.into_iter().filter(|key| key.starts_with(prefix)).collect();
        wanted.sort_unstable();
        ensure!(
            found.iter().map(|record| record.key.as_str()).eq(wanted.iter().copied()),
            "below {prefix:?} should be {wanted:?}, but found {:?}",
            found.iter().map(|record| &record.key).collect::<Vec<_>>()
        );
        ensure!(found.iter().all(own_content), "below {prefix:?} a record has another's content");
    }
    for pattern in PATTERNS {
        unmatched(&reader, pattern).await?;
    }
    Ok(())
}

fn own_content(record: &Record) -> bool {
    record.value == format!("{{\"key\":\"{}\"}}", record.key).as_bytes()
}

async fn unmatched(reader: &Handle, pattern: &str) -> Result<(), Violation> {
    let exchange = Exchange { writes: Vec::new(), reads: vec![Read::Prefix(Key::new(pattern))] };
    let answer = reader.store().exchange(reader.cluster(), Lane::Watch, exchange).await;
    let fine = match &answer {
        Ok(reply) => reply.reads == [Found::Records(Vec::new())],
        Err(error) => error.kind == ErrorKind::Rejected || reader.tolerates(error),
    };
    let gave = match &answer {
        Ok(reply) => reply.reads.first().map_or_else(|| "nothing".to_owned(), shown::found),
        Err(error) => error.to_string(),
    };
    ensure!(fine, "nothing starts with {pattern:?}, but asking for that gave {gave}");
    Ok(())
}
