//! One answer for an exchange whose operations were sent one by one.

use incumbent_core::store::{ErrorKind, Found, Outcome, Reply, StoreError};

/// The reply, or one error for all: the one that says most about what to do, a wrong set-up before
/// a doubt before a wait. What was applied can't be told beside an error, so as soon as one write was
/// applied, or may have been, the whole of it is unknown.
///
/// # Errors
///
/// If any operation failed.
pub fn settled(
    outcomes: Vec<Result<Outcome, StoreError>>,
    found: Vec<Result<Found, StoreError>>,
) -> Result<Reply, StoreError> {
    let applied = outcomes.iter().any(|outcome| match outcome {
        Ok(Outcome::Applied(_) | Outcome::Deleted) => true,
        Ok(Outcome::Refused) => false,
        Err(error) => error.kind == ErrorKind::Unknown,
    });
    let mut worst: Option<&StoreError> = None;
    let errors = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    for error in errors.chain(found.iter().filter_map(|found| found.as_ref().err())) {
        if worst.is_none_or(|worst| weight(error.kind) > weight(worst.kind)) {
            worst = Some(error);
        }
    }
    if let Some(worst) = worst {
        let kind = if applied { ErrorKind::Unknown } else { worst.kind };
        return Err(StoreError { kind, message: worst.message.clone() });
    }
    Ok(Reply {
        writes: outcomes.into_iter().flatten().collect(),
        reads: found.into_iter().flatten().collect(),
    })
}

fn weight(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Unavailable => 0,
        ErrorKind::Unknown => 1,
        ErrorKind::Rejected => 2,
    }
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::Version;

    use super::*;

    fn gone<T>() -> Result<T, StoreError> {
        Err(StoreError::unavailable("gone"))
    }

    fn denied<T>() -> Result<T, StoreError> {
        Err(StoreError::rejected("denied"))
    }

    fn applied() -> Result<Outcome, StoreError> {
        Ok(Outcome::Applied(Version::new("1")))
    }

    fn kind(
        outcomes: Vec<Result<Outcome, StoreError>>,
        found: Vec<Result<Found, StoreError>>,
    ) -> ErrorKind {
        settled(outcomes, found).unwrap_err().kind
    }

    #[test]
    fn what_was_applied_beside_an_error_makes_it_unknown() {
        assert_eq!(kind(vec![applied(), gone()], vec![]), ErrorKind::Unknown);
        assert_eq!(kind(vec![denied(), applied()], vec![]), ErrorKind::Unknown);
        assert_eq!(kind(vec![denied(), Ok(Outcome::Deleted)], vec![]), ErrorKind::Unknown);
        assert_eq!(kind(vec![applied()], vec![gone()]), ErrorKind::Unknown);
        let unknown = Err(StoreError::unknown("x"));
        assert_eq!(kind(vec![gone(), unknown, denied()], vec![]), ErrorKind::Unknown);
    }

    #[test]
    fn where_nothing_was_applied_that_is_said() {
        assert_eq!(kind(vec![Ok(Outcome::Refused), gone()], vec![]), ErrorKind::Unavailable);
        assert_eq!(kind(vec![gone(), denied()], vec![]), ErrorKind::Rejected);
        assert_eq!(kind(vec![], vec![gone()]), ErrorKind::Unavailable);
        assert_eq!(settled(vec![applied()], vec![Ok(Found::Absent)]).unwrap().reads.len(), 1);
    }
}
