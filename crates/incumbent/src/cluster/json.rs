//! Spans of time as JSON has them: whole milliseconds.

use std::time::Duration;

use serde::Serializer;

pub(crate) fn millis<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(whole(*span))
}

pub(crate) fn some_millis<S: Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => serializer.serialize_some(&whole(*span)),
        None => serializer.serialize_none(),
    }
}

fn whole(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
