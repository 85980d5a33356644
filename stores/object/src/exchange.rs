//! An exchange: all its requests at once, and one answer.

use futures_util::future::{join, join_all};
use incumbent_core::store::{ErrorKind, Exchange, Found, Outcome, Reply, StoreError};

use crate::lane::LaneClient;

pub(crate) async fn exchange(
    lane: &LaneClient,
    cluster: &str,
    exchange: Exchange,
) -> Result<Reply, StoreError> {
    let writes = join_all(exchange.writes.iter().map(|write| lane.write(cluster, write)));
    let reads = join_all(exchange.reads.iter().map(|read| lane.read(cluster, read)));
    let (writes, reads) = join(writes, reads).await;
    settle(writes, reads)
}

/// One answer for all. If anything failed, the worst that could be concluded from it is told: as
/// soon as one write was applied or may have been, nobody may conclude that nothing was.
fn settle(
    writes: Vec<Result<Outcome, StoreError>>,
    reads: Vec<Result<Found, StoreError>>,
) -> Result<Reply, StoreError> {
    let applied = writes.iter().any(|write| match write {
        Ok(Outcome::Applied(_) | Outcome::Deleted) => true,
        Ok(Outcome::Refused) => false,
        Err(error) => error.kind == ErrorKind::Unknown,
    });
    let mut worst: Option<StoreError> = None;
    let mut done = Vec::with_capacity(writes.len());
    for write in writes {
        match write {
            Ok(outcome) => done.push(outcome),
            Err(error) => worst = Some(worse(worst, error)),
        }
    }
    let mut found = Vec::with_capacity(reads.len());
    for read in reads {
        match read {
            Ok(answer) => found.push(answer),
            Err(error) => worst = Some(worse(worst, error)),
        }
    }
    match worst {
        None => Ok(Reply { writes: done, reads: found }),
        Some(error) if applied => Err(StoreError { kind: ErrorKind::Unknown, ..error }),
        Some(error) => Err(error),
    }
}

/// The one that says more about what to do: a wrong set-up before a doubt before a wait.
fn worse(known: Option<StoreError>, other: StoreError) -> StoreError {
    let rank = |error: &StoreError| match error.kind {
        ErrorKind::Unavailable => 0,
        ErrorKind::Unknown => 1,
        ErrorKind::Rejected => 2,
    };
    match known {
        Some(known) if rank(&known) >= rank(&other) => known,
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::settle;
    use incumbent_core::store::{ErrorKind, Found, Outcome, StoreError, Version};

    fn applied() -> Result<Outcome, StoreError> {
        Ok(Outcome::Applied(Version::new("v")))
    }

    fn kind(
        writes: Vec<Result<Outcome, StoreError>>,
        reads: Vec<Result<Found, StoreError>>,
    ) -> ErrorKind {
        settle(writes, reads).unwrap_err().kind
    }

    #[test]
    fn what_one_write_did_is_not_denied_because_another_failed() {
        let unavailable = || Err(StoreError::unavailable("x"));
        let rejected = || Err(StoreError::rejected("x"));
        assert_eq!(kind(vec![applied(), unavailable()], vec![]), ErrorKind::Unknown);
        assert_eq!(kind(vec![rejected(), applied()], vec![]), ErrorKind::Unknown);
        assert_eq!(kind(vec![Ok(Outcome::Deleted), rejected()], vec![]), ErrorKind::Unknown);
        let unknown = Err(StoreError::unknown("x"));
        assert_eq!(kind(vec![unavailable(), unknown, rejected()], vec![]), ErrorKind::Unknown);
        assert_eq!(
            kind(vec![applied()], vec![Err(StoreError::unavailable("x"))]),
            ErrorKind::Unknown
        );
    }

    #[test]
    fn where_nothing_was_applied_that_is_said() {
        let unavailable = || Err(StoreError::unavailable("x"));
        assert_eq!(kind(vec![Ok(Outcome::Refused), unavailable()], vec![]), ErrorKind::Unavailable);
        let rejected = Err(StoreError::rejected("y"));
        assert_eq!(kind(vec![unavailable(), rejected], vec![]), ErrorKind::Rejected);
        assert_eq!(kind(vec![], vec![Err(StoreError::unavailable("x"))]), ErrorKind::Unavailable);
        assert!(settle(vec![applied()], vec![Ok(Found::Absent)]).is_ok());
    }
}
