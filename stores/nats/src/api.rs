//! The few requests of the JetStream interface that the store makes, as JSON.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Something that the server said is wrong.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct ApiError {
    #[serde(default)]
    pub(crate) code: u32,
    #[serde(default)]
    pub(crate) err_code: u32,
    #[serde(default)]
    pub(crate) description: String,
}

/// The numbers by which JetStream tells errors apart.
impl ApiError {
    pub(crate) const NO_MESSAGE: u32 = 10037;
    pub(crate) const NO_STREAM: u32 = 10059;
    pub(crate) const NAME_IN_USE: u32 = 10058;
    /// Newer servers have another number where they don't say which sequence is the last.
    pub(crate) const WRONG_SEQUENCE: [u32; 2] = [10071, 10164];
}

/// An answer, or an error in its place.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<T> {
    error: Option<ApiError>,
    #[serde(flatten)]
    answer: Option<T>,
}

impl<T> Envelope<T> {
    /// The answer; `None` in place of the error means that it made no sense.
    pub(crate) fn open(self) -> Result<T, Option<ApiError>> {
        match (self.error, self.answer) {
            (Some(error), _) => Err(Some(error)),
            (None, Some(answer)) => Ok(answer),
            (None, None) => Err(None),
        }
    }
}

/// The acknowledgement of a message that was stored.
#[derive(Debug, Deserialize)]
pub(crate) struct Stored {
    pub(crate) stream: String,
    pub(crate) seq: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct LastOf<'a> {
    pub(crate) last_by_subj: &'a str,
}

#[derive(Debug, Serialize)]
pub(crate) struct Purge<'a> {
    pub(crate) filter: &'a str,
    /// Up to this one, and without it.
    pub(crate) seq: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Got {
    pub(crate) message: Kept,
}

/// A message as the stream keeps it.
#[derive(Debug, Deserialize)]
pub(crate) struct Kept {
    pub(crate) seq: u64,
    #[serde(default)]
    data: String,
    #[serde(default)]
    hdrs: String,
}

impl Kept {
    pub(crate) fn value(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.data).ok()
    }

    /// Whether it says that the record was deleted, as `nats kv del` and `nats kv purge` do.
    pub(crate) fn is_marker(&self) -> bool {
        let Ok(headers) = STANDARD.decode(&self.hdrs) else { return false };
        String::from_utf8_lossy(&headers).lines().any(|line| {
            let Some((name, value)) = line.split_once(':') else { return false };
            match name.trim() {
                "KV-Operation" => matches!(value.trim(), "DEL" | "PURGE"),
                // The server's own words for what ran out or was removed.
                "Nats-Marker-Reason" => true,
                _ => false,
            }
        })
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct InfoRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subjects_filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Info {
    pub(crate) config: Config,
    #[serde(default)]
    pub(crate) created: String,
    #[serde(default)]
    pub(crate) state: State,
    /// How many subjects there are, where they were asked for.
    #[serde(default)]
    pub(crate) total: usize,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct State {
    #[serde(default)]
    pub(crate) last_seq: u64,
    #[serde(default)]
    pub(crate) num_deleted: u64,
    pub(crate) subjects: Option<BTreeMap<String, u64>>,
}

/// The settings of a stream that matter here.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) subjects: Vec<String>,
    pub(crate) retention: String,
    pub(crate) storage: String,
    pub(crate) discard: String,
    pub(crate) num_replicas: u32,
    pub(crate) max_age: i64,
    pub(crate) max_msgs: i64,
    pub(crate) max_bytes: i64,
    pub(crate) max_msg_size: i64,
    pub(crate) max_msgs_per_subject: i64,
    pub(crate) max_consumers: i64,
    pub(crate) allow_rollup_hdrs: bool,
    pub(crate) allow_direct: bool,
    pub(crate) deny_delete: bool,
    pub(crate) deny_purge: bool,
    #[serde(skip_serializing)]
    pub(crate) discard_new_per_subject: bool,
    #[serde(skip_serializing)]
    pub(crate) no_ack: bool,
    #[serde(skip_serializing)]
    pub(crate) sealed: bool,
    #[serde(skip_serializing)]
    pub(crate) mirror: Option<serde_json::Value>,
    #[serde(skip_serializing)]
    pub(crate) persist_mode: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: String::new(),
            subjects: Vec::new(),
            retention: "limits".to_owned(),
            storage: "file".to_owned(),
            discard: "new".to_owned(),
            num_replicas: 1,
            max_age: 0,
            max_msgs: -1,
            max_bytes: -1,
            max_msg_size: -1,
            max_msgs_per_subject: 1,
            max_consumers: -1,
            allow_rollup_hdrs: true,
            allow_direct: false,
            deny_delete: true,
            deny_purge: false,
            discard_new_per_subject: false,
            no_ack: false,
            sealed: false,
            mirror: None,
            persist_mode: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_from_an_answer() {
        let wrong = r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"},"stream":"KV_b","seq":0}"#;
        let answer: Envelope<Stored> = serde_json::from_str(wrong).unwrap();
        assert_eq!(answer.open().unwrap_err().unwrap().err_code, 10071);
        let right: Envelope<Stored> =
            serde_json::from_str(r#"{"stream":"KV_b","seq":8,"domain":"x"}"#).unwrap();
        assert_eq!(right.open().unwrap().seq, 8);
        let nonsense: Envelope<Stored> = serde_json::from_str(r#"{"hello":1}"#).unwrap();
        assert!(nonsense.open().unwrap_err().is_none());
    }

    #[test]
    fn markers_are_known() {
        let kept =
            |headers: &str| Kept { seq: 1, data: String::new(), hdrs: STANDARD.encode(headers) };
        assert!(kept("NATS/1.0\r\nKV-Operation: DEL\r\n\r\n").is_marker());
        assert!(kept("NATS/1.0\r\nKV-Operation: PURGE\r\nNats-Rollup: sub\r\n\r\n").is_marker());
        assert!(!kept("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 0\r\n\r\n").is_marker());
        assert!(!kept("").is_marker());
    }
}
