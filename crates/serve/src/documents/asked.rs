//! What requests say.

use std::collections::BTreeMap;

use crate::document::request;

request! {
    /// A candidacy of a process for a lease.
    HoldRequest {
        /// Who is to hold it, as people will see it.
        name: String,
        /// Where others can reach it.
        address: Option<String>,
        /// What others can read beside the name.
        payload: Option<String>,
        /// Whatever operators sort it by.
        labels: Option<BTreeMap<String, String>>,
        /// Whether to wait for the lease (true), and for `acquire` how long.
        wait: Option<Wait>,
        /// How long others wait for this process should all trace of it be lost.
        ttl: Option<String>,
        /// How long its work may take to end.
        grace: Option<String>,
        /// Who goes first when the lease is free.
        priority: Option<u8>,
        /// The promise that the work reports progress at least so often, such as 30s.
        watchdog: Option<String>,
        /// `wait`, or `ended`: the promise that the connection is direct and that this process stops its work before it closes it.
        on_close: Option<OnClose>,
    }
    /// A process that serves the duties of a family.
    ServeRequest {
        /// What the node is called.
        name: String,
        /// All duties of the family that should run, in the whole cluster: their names.
        duties: Vec<String>,
        /// The version of the family that this process runs.
        version: Option<String>,
        /// How much weight of duties it takes on.
        capacity: Option<u64>,
        /// How many duties it takes on.
        max_duties: Option<u32>,
        /// Whether it prepares before a duty changes over to it from another version.
        prepares: Option<bool>,
        /// Where others can reach it.
        address: Option<String>,
        /// Whatever operators sort it by.
        labels: Option<BTreeMap<String, String>>,
        /// How long others wait for this process should all trace of it be lost.
        ttl: Option<String>,
        /// How long a duty may take to end.
        grace: Option<String>,
        /// The promise that the work reports progress at least so often, such as 30s.
        watchdog: Option<String>,
        /// `wait`, or `ended`: the promise that the connection is direct and that this process stops its work before it closes it.
        on_close: Option<OnClose>,
    }
    /// The work comes on.
    ProgressRequest {
        /// What a duty is at, for people; 200 characters are kept.
        text: Option<String>,
    }
    /// What a client says of a duty.
    ReportRequest {
        /// Of a run: `started`, `stopped` or `failed`. Of preparing: `prepared` or `failed`.
        state: Reported,
        /// The duty's name, where preparing is spoken of.
        duty: Option<String>,
        /// What went wrong.
        error: Option<String>,
    }
    /// The question how long a hold may be trusted.
    TrustRequest {
        /// Comes back in the answer; 64 bytes at most.
        nonce: Option<String>,
    }
    /// Nothing more to say.
    NothingRequest {}
    /// To whom.
    ToRequest {
        /// A node's name, or for a transfer a member's id.
        to: String,
    }
    /// Where a duty is wanted.
    PinRequest {
        /// The node's name.
        node: String,
        /// Whether it rather shall not run than elsewhere.
        required: Option<bool>,
    }
}

/// Whether to wait, or how long.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Wait {
    /// Or not.
    Whether(bool),
    /// So long.
    Long(String),
}

impl crate::document::Schema for Wait {
    fn schema(_: &mut crate::document::Schemas) -> serde_json::Value {
        serde_json::json!({ "anyOf": [{ "type": "boolean" }, { "type": "string" }] })
    }
}

/// What the end of the connection means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnClose {
    /// Nothing: told trust runs out.
    #[default]
    Wait,
    /// The client has ended its work before.
    Ended,
}

impl crate::document::Schema for OnClose {
    fn schema(_: &mut crate::document::Schemas) -> serde_json::Value {
        serde_json::json!({ "type": "string", "enum": ["wait", "ended"] })
    }
}

/// How a duty stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reported {
    Prepared,
    Started,
    Stopped,
    Failed,
}

impl crate::document::Schema for Reported {
    fn schema(_: &mut crate::document::Schemas) -> serde_json::Value {
        let states = ["prepared", "started", "stopped", "failed"];
        serde_json::json!({ "type": "string", "enum": states })
    }
}
