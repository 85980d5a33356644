//! The part of etcd's messages that this store speaks, written out by hand so that no build needs
//! `protoc`. Numbers and types are those of `rpc.proto` and `kv.proto` in etcd's sources; fields
//! that nobody here reads are left out, and skipped when they come.

use prost::{Message, Oneof};

/// `etcdserverpb.KV/Txn`.
pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
/// `etcdserverpb.Watch/Watch`.
pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
/// `etcdserverpb.Auth/Authenticate`.
pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) value: Vec<u8>,
}

/// Linearizable, because `serializable` (field 7) is never set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutResponse {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRangeResponse {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    /// What the two are compared for: 0 is equality, and nothing else is used.
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    /// 1 is the revision that created the key, 2 the one that changed it last.
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(oneof = "Target", tags = "5, 6")]
    pub(crate) value: Option<Target>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Target {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Ask", tags = "1, 2, 3, 4")]
    pub(crate) request: Option<Ask>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Ask {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    #[prost(oneof = "Told", tags = "1, 2, 3, 4")]
    pub(crate) response: Option<Told>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Told {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

/// The derived `Debug` would show the password, so nothing ever formats this one.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateRequest").finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}

impl std::fmt::Debug for AuthenticateResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateResponse").finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) create: Option<WatchCreateRequest>,
}

/// From now on, because `start_revision` (field 3) is never set: so nothing that was compacted is
/// ever asked for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WatchResponse {
    #[prost(bool, tag = "3")]
    pub(crate) created: bool,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<Event>,
}

/// A hint carries no data, so nothing of it is read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {}
