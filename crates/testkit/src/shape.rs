//! Whether a reply answers what was asked at all.

use incumbent_core::store::{Exchange, Found, Outcome, Read, Reply, Write};

use crate::violation::ensure;
use crate::{Violation, shown};

/// Checks that there is one answer to each question, and of the right sort.
pub(crate) fn check(asked: &Exchange, reply: &Reply) -> Result<(), Violation> {
    let (writes, reads) = (asked.writes.len(), asked.reads.len());
    ensure!(
        reply.writes.len() == writes && reply.reads.len() == reads,
        "{writes} writes and {reads} reads got {} outcomes and {} findings",
        reply.writes.len(),
        reply.reads.len()
    );
    for (write, outcome) in asked.writes.iter().zip(&reply.writes) {
        let fits = match (write, outcome) {
            (_, Outcome::Refused)
            | (Write::Put(_), Outcome::Applied(_))
            | (Write::Delete(_), Outcome::Deleted) => true,
            (Write::Put(_), Outcome::Deleted) | (Write::Delete(_), Outcome::Applied(_)) => false,
        };
        ensure!(fits, "the write of {} was answered with {outcome:?}", write.key());
    }
    for (read, found) in asked.reads.iter().zip(&reply.reads) {
        check_found(read, found)?;
    }
    Ok(())
}

fn check_found(read: &Read, found: &Found) -> Result<(), Violation> {
    match (read, found) {
        (Read::Key { .. }, Found::Absent)
        | (Read::Key { unless: Some(_), .. }, Found::Unchanged) => Ok(()),
        (Read::Key { key, .. }, Found::Record(record)) => {
            ensure!(record.key == *key, "asked for {key}, found the record of {}", record.key);
            Ok(())
        }
        (Read::Prefix(prefix), Found::Records(records)) => {
            let stray =
                records.iter().find(|record| !record.key.as_str().starts_with(prefix.as_str()));
            ensure!(
                stray.is_none(),
                "asked for {prefix}…, found {:?} among them",
                stray.map(|record| &record.key)
            );
            Ok(())
        }
        (Read::Key { .. }, _) | (Read::Prefix(_), _) => Err(Violation::new(format!(
            "the question {read:?} was answered with {}",
            shown::found(found)
        ))),
    }
}
