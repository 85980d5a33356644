//! What an error says about the write that met it, and what to do about it.

use incumbent_core::store::{ErrorKind, StoreError};
use incumbent_store_common::chain;

use crate::client;
use crate::http::Trace;
use crate::options::Cloud;

/// Where the records are, for messages. It holds no secrets.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) cloud: Option<Cloud>,
    /// Such as `s3://bucket/prefix`.
    pub(crate) shown: String,
    pub(crate) bucket: String,
}

/// What came of a request that did not succeed.
#[derive(Debug)]
pub(crate) enum Judgement {
    /// The store compared and declined: nothing was applied.
    Conflict,
    /// There is no such object. Nothing was applied.
    Missing,
    /// The reader has the latest already.
    Unchanged,
    /// Something is wrong; of a read, too, this says what it would mean for a write.
    Failure(StoreError),
}

/// The bucket or container is missing. Such an answer has the same status as a missing object.
const NO_BUCKET: [&str; 4] =
    ["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled"];
/// The server declined before it did anything, and will not always.
const LATER: [&str; 4] = ["SlowDown", "RequestTimeout", "TooManyRequests", "RateLimitExceeded"];
/// The longest text of another library in a message.
const LONGEST: usize = 300;

impl Place {
    /// Judges an error. `noted` is whether the client notes what became of its requests.
    pub(crate) fn judge(
        &self,
        what: &str,
        error: &object_store::Error,
        trace: &Trace,
        noted: bool,
    ) -> Judgement {
        use object_store::Error as E;
        if NO_BUCKET.contains(&trace.code.as_str()) {
            return Judgement::Failure(self.no_bucket(what, &trace.code));
        }
        match error {
            E::NotFound { .. } => Judgement::Missing,
            E::NotModified { .. } => Judgement::Unchanged,
            E::Precondition { .. } | E::AlreadyExists { .. } => Judgement::Conflict,
            error => {
                let kind = kind(error, trace, noted);
                Judgement::Failure(self.told(what, error, kind, trace))
            }
        }
    }

    /// The error of a request of the set-up, which is nobody's write.
    pub(crate) fn failure(
        &self,
        what: &str,
        error: &object_store::Error,
        trace: &Trace,
    ) -> StoreError {
        let kind = match kind(error, trace, true) {
            ErrorKind::Unknown | ErrorKind::Unavailable => ErrorKind::Unavailable,
            ErrorKind::Rejected => ErrorKind::Rejected,
        };
        self.told(what, error, kind, trace)
    }

    /// An answer that no store should give; it may have applied the write.
    pub(crate) fn strange(&self, what: &str, said: &str) -> StoreError {
        StoreError::unknown(format!("{}: {what} was answered with {said}", self.shown))
    }

    /// Nothing came back in time.
    pub(crate) fn silent(&self, what: &str) -> StoreError {
        StoreError::unknown(format!("{}: {what} was not answered in time", self.shown))
    }

    fn told(
        &self,
        what: &str,
        error: &object_store::Error,
        kind: ErrorKind,
        trace: &Trace,
    ) -> StoreError {
        let mut message = format!("{}: {what} failed: {}", self.shown, story(error));
        if let Some(step) = self.next_step(kind, trace) {
            message.push_str(". ");
            message.push_str(&step);
        }
        StoreError { kind, message }
    }

    fn no_bucket(&self, what: &str, code: &str) -> StoreError {
        let bucket = &self.bucket;
        let create = match self.cloud {
            Some(Cloud::S3) => format!("create it with `aws s3 mb s3://{bucket}`"),
            Some(Cloud::Google) => {
                format!("create it with `gcloud storage buckets create gs://{bucket}`")
            }
            Some(Cloud::Azure) => {
                format!("create it with `az storage container create --name {bucket}`")
            }
            None => "create it".to_owned(),
        };
        StoreError::rejected(format!(
            "{}: {what} failed, because there is no bucket or container {bucket:?} ({code}): \
             {create}, or name another",
            self.shown
        ))
    }

    fn next_step(&self, kind: ErrorKind, trace: &Trace) -> Option<String> {
        let variables = client::variables(self.cloud?);
        let skewed = ["RequestTimeTooSkewed", "RequestExpired"].contains(&trace.code.as_str());
        Some(match (kind, trace.status) {
            (ErrorKind::Rejected, _) if skewed => "Set this machine's clock".to_owned(),
            (ErrorKind::Rejected, Some(401 | 403) | None) => format!(
                "Check that {variables} or the role of this machine are right, and that they allow \
                 to list, read, write and delete objects below {}",
                self.shown
            ),
            (ErrorKind::Rejected, Some(501 | 405)) => {
                "This server has no conditional writes, without which it can't be used: choose \
                 another store"
                    .to_owned()
            }
            (ErrorKind::Rejected, Some(300..=399)) => {
                "The bucket is elsewhere: set region= or endpoint=".to_owned()
            }
            (ErrorKind::Unavailable, None) => {
                "Check that the endpoint is right and can be reached".to_owned()
            }
            _ => return None,
        })
    }
}

fn kind(error: &object_store::Error, trace: &Trace, noted: bool) -> ErrorKind {
    use object_store::Error as E;
    match error {
        E::PermissionDenied { .. }
        | E::Unauthenticated { .. }
        | E::NotImplemented { .. }
        | E::NotSupported { .. }
        | E::InvalidPath { .. }
        | E::UnknownConfigurationKey { .. } => return ErrorKind::Rejected,
        _ if !noted => return ErrorKind::Unknown,
        _ => {}
    }
    if trace.unsent || LATER.contains(&trace.code.as_str()) {
        return ErrorKind::Unavailable;
    }
    match trace.status {
        // Not even asked: credentials are missing or can't be read.
        None if !trace.asked => ErrorKind::Rejected,
        Some(429) => ErrorKind::Unavailable,
        // Declined for what was asked, before anything was done. 408 is a time-out.
        Some(300..=407 | 409..=499 | 501 | 505) => ErrorKind::Rejected,
        // A server that failed may have failed after the write, and an answer that can't be read
        // may be that to a write that was applied.
        Some(_) | None => ErrorKind::Unknown,
    }
}

/// The error and what caused it, without saying anything twice.
fn story(error: &object_store::Error) -> String {
    let text = chain(error);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{Judgement, Place};
    use crate::http::Trace;
    use crate::options::Cloud;
    use incumbent_core::store::ErrorKind;

    fn place() -> Place {
        let (shown, bucket) = ("s3://b/p".to_owned(), "b".to_owned());
        Place { cloud: Some(Cloud::S3), shown, bucket }
    }

    fn generic() -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: "it broke".into() }
    }

    fn kind(status: Option<u16>, code: &str, unsent: bool) -> ErrorKind {
        let trace = Trace { asked: true, unsent, status, code: code.to_owned() };
        match place().judge("a write", &generic(), &trace, true) {
            Judgement::Failure(error) => error.kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_surely_was_not_applied_is_unavailable() {
        assert_eq!(kind(None, "", true), ErrorKind::Unavailable);
        assert_eq!(kind(Some(429), "", false), ErrorKind::Unavailable);
        assert_eq!(kind(Some(503), "SlowDown", false), ErrorKind::Unavailable);
        assert_eq!(kind(Some(400), "RequestTimeout", false), ErrorKind::Unavailable);
        for status in [200, 201, 408, 500, 502, 503, 504] {
            assert_eq!(kind(Some(status), "", false), ErrorKind::Unknown, "{status}");
        }
        assert_eq!(kind(None, "", false), ErrorKind::Unknown);
    }

    #[test]
    fn a_wrong_set_up_is_rejected() {
        for status in [301, 307, 400, 401, 403, 405, 411, 501] {
            assert_eq!(kind(Some(status), "", false), ErrorKind::Rejected, "{status}");
        }
    }

    #[test]
    fn a_missing_bucket_is_not_a_missing_object() {
        let missing = || object_store::Error::NotFound { path: "x".into(), source: "404".into() };
        let object = Trace { asked: true, code: "NoSuchKey".into(), ..Trace::default() };
        let judged = place().judge("a read", &missing(), &object, true);
        assert!(matches!(judged, Judgement::Missing));
        let bucket = Trace { code: "NoSuchBucket".into(), ..object };
        let Judgement::Failure(error) = place().judge("a read", &missing(), &bucket, true) else {
            panic!("a missing bucket");
        };
        assert_eq!(error.kind, ErrorKind::Rejected);
        assert!(error.message.contains("aws s3 mb s3://b"), "{error}");
    }

    #[test]
    fn a_store_that_notes_nothing_is_never_sure() {
        let judged = place().judge("a write", &generic(), &Trace::default(), false);
        assert!(matches!(judged, Judgement::Failure(error) if error.kind == ErrorKind::Unknown));
    }
}
