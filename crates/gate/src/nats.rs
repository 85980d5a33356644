//! A key of a NATS JetStream bucket. The term is a header of the message that is the key's value, so
//! that whoever reads the bucket finds the value as it is.

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use async_nats::subject::ToSubject as _;

use crate::error::seen;
use crate::{GateError, Token};

/// Whatever the client says.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Holds the highest term that has written this key.
const HEADER: &str = "Incumbent-Term";

/// What a key holds, and the state of it that the next write is based on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The value; empty if the key is new.
    pub value: Vec<u8>,
    /// The term that wrote it; 0 if it was written past the gate, or never.
    pub term: u64,
    revision: u64,
}

/// Reads a key, from the leader of its stream.
///
/// # Errors
/// As NATS.
pub async fn load(js: &Context, bucket: &str, key: &str) -> Result<Found, GateError<Error>> {
    let stream = js.get_stream_no_info(format!("KV_{bucket}")).await;
    let stream = stream.map_err(|error| GateError::Unreachable(error.into()))?;
    let message = stream.get_last_raw_message_by_subject(&format!("$KV.{bucket}.{key}")).await;
    let message = match message {
        Ok(message) => message,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
            return Ok(Found::default());
        }
        Err(error) => return Err(GateError::Unreachable(error.into())),
    };
    let term = message.headers.get(HEADER).map_or(Ok(0), |term| seen(term.as_str().as_bytes()))?;
    Ok(Found { value: message.payload.to_vec(), term, revision: message.sequence })
}

/// Writes a key, unless a higher term or anybody since `found` has. What comes back is what the next
/// write is based on.
///
/// A new leader saves what it has loaded before it relies on it: from then on its predecessor's
/// writes fail. Don't delete such a key, nor let it expire: its term would be gone with it. Save an
/// empty value.
///
/// # Errors
/// [`GateError::Superseded`] if a higher term has written, [`GateError::Changed`] if somebody else
/// has, or this very write did and its acknowledgement was lost. Nothing was written then.
pub async fn save(
    js: &Context,
    bucket: &str,
    key: &str,
    token: &Token,
    found: &Found,
    value: Vec<u8>,
) -> Result<Found, GateError<Error>> {
    if found.term > token.term() {
        return Err(GateError::Superseded { term: found.term });
    }
    let subject = format!("$KV.{bucket}.{key}").to_subject();
    let mut headers = HeaderMap::new();
    headers.insert(HEADER, token.term().to_string());
    let message = PublishMessage::build().payload(value.clone().into()).headers(headers);
    let message = message.expected_last_subject_sequence(found.revision);
    let sent = js.send_publish(subject, message).await;
    let acknowledged = match sent {
        Ok(sent) => sent.await,
        Err(error) => Err(error),
    };
    match acknowledged {
        Ok(done) => Ok(Found { value, term: token.term(), revision: done.sequence }),
        Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
            let now = load(js, bucket, key).await?;
            let over = now.term > token.term();
            Err(if over { GateError::Superseded { term: now.term } } else { GateError::Changed })
        }
        Err(error) => Err(GateError::Unreachable(error.into())),
    }
}
