//! A key in etcd, asked in the transaction that writes.
//!
//! [`admit`] speaks to etcd over whatever gRPC channel the application has. With another client, put
//! the same into a transaction of your own: if the value of the gate's key is less than [`bound`],
//! or its create revision is 0, then put [`mark`] into it, beside your own writes.

use http::uri::PathAndQuery;
use prost::{Message, Oneof};
use tonic::client::{Grpc, GrpcService};
use tonic::codegen::{Body, Bytes, StdError};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::error::seen;
use crate::{GateError, Token};

/// What a gate's key holds after this term: digits of one length, so that etcd, which compares bytes,
/// compares numbers.
#[must_use]
pub fn mark(token: &Token) -> String {
    format!("{:020}", token.term())
}

/// What a gate's key has to be less than for this term to pass: etcd knows less, and not less or equal.
#[must_use]
pub fn bound(token: &Token) -> String {
    format!("{:020}", token.term() + 1)
}

/// Puts these values, `None` for a key to be deleted, if the gate has seen no higher term. No key may
/// come twice, nor be the gate's.
///
/// # Errors
/// [`GateError::Superseded`] if the gate has seen a higher term: then nothing was written.
pub async fn admit<C>(
    channel: C,
    gate: &str,
    token: &Token,
    writes: &[(&str, Option<&[u8]>)],
) -> Result<(), GateError<Status>>
where
    C: GrpcService<tonic::body::Body>,
    C::Error: Into<StdError>,
    C::ResponseBody: Body<Data = Bytes> + Send + 'static,
    <C::ResponseBody as Body>::Error: Into<StdError> + Send,
{
    let mut client = Grpc::new(channel);
    let ready = client.ready().await.map_err(|error| Status::from_error(error.into()));
    ready.map_err(GateError::Unreachable)?;
    let path = PathAndQuery::from_static("/etcdserverpb.KV/Txn");
    let request = Request::new(transaction(gate, token, writes));
    let codec: ProstCodec<Transaction, Answer> = ProstCodec::default();
    let answer = client.unary(request, path, codec).await.map_err(GateError::Unreachable)?;
    let outer = answer.into_inner();
    if outer.succeeded {
        return Ok(());
    }
    // The gate has seen a higher term, or is new.
    let Some(Told::Inner(inner)) = outer.told() else {
        return Err(GateError::Unreadable("an answer without its parts".to_owned()));
    };
    if inner.succeeded {
        return Ok(());
    }
    match inner.told() {
        Some(Told::Range(Found { kvs })) => match kvs.first() {
            Some(found) => Err(match seen(&found.value)? {
                term if term > token.term() => GateError::Superseded { term },
                // Another number of digits: somebody else wrote it.
                _ => GateError::Unreadable(String::from_utf8_lossy(&found.value).into_owned()),
            }),
            None => Err(GateError::Changed),
        },
        _ => Err(GateError::Unreadable("an answer without its parts".to_owned())),
    }
}

fn transaction(gate: &str, token: &Token, writes: &[(&str, Option<&[u8]>)]) -> Transaction {
    let gate = gate.as_bytes().to_vec();
    let put = |key: &[u8], value: &[u8]| Step {
        ask: Some(Ask::Put(Put { key: key.to_vec(), value: value.to_vec() })),
    };
    let mut steps = vec![put(&gate, mark(token).as_bytes())];
    steps.extend(writes.iter().map(|(key, value)| match value {
        Some(value) => put(key.as_bytes(), value),
        None => Step { ask: Some(Ask::Delete(Key { key: key.as_bytes().to_vec() })) },
    }));
    let compare =
        |result, target, value| Compare { result, target, key: gate.clone(), value: Some(value) };
    let new = Transaction {
        compare: vec![compare(EQUAL, CREATED, Against::Created(0))],
        success: steps.clone(),
        failure: vec![Step { ask: Some(Ask::Range(Key { key: gate.clone() })) }],
    };
    Transaction {
        compare: vec![compare(LESS, VALUE, Against::Value(bound(token).into_bytes()))],
        success: steps,
        failure: vec![Step { ask: Some(Ask::Inner(new)) }],
    }
}

// The part of etcd's messages that a gate needs, by the numbers of its `rpc.proto`, so that no build
// needs `protoc`.

const EQUAL: i32 = 0;
const LESS: i32 = 2;
const CREATED: i32 = 1;
const VALUE: i32 = 3;

#[derive(Clone, PartialEq, Message)]
struct Key {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Put {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Compare {
    #[prost(int32, tag = "1")]
    result: i32,
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(oneof = "Against", tags = "5, 7")]
    value: Option<Against>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Against {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(bytes, tag = "7")]
    Value(Vec<u8>),
}

#[derive(Clone, PartialEq, Message)]
struct Step {
    #[prost(oneof = "Ask", tags = "1, 2, 3, 4")]
    ask: Option<Ask>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Ask {
    #[prost(message, tag = "1")]
    Range(Key),
    #[prost(message, tag = "2")]
    Put(Put),
    #[prost(message, tag = "3")]
    Delete(Key),
    #[prost(message, tag = "4")]
    Inner(Transaction),
}

#[derive(Clone, PartialEq, Message)]
struct Transaction {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<Step>,
    #[prost(message, repeated, tag = "3")]
    failure: Vec<Step>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Found {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Done {
    #[prost(oneof = "Told", tags = "1, 4")]
    told: Option<Told>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Told {
    #[prost(message, tag = "1")]
    Range(Found),
    #[prost(message, tag = "4")]
    Inner(Answer),
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(bool, tag = "2")]
    succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    responses: Vec<Done>,
}

impl Answer {
    fn told(&self) -> Option<&Told> {
        self.responses.first().and_then(|done| done.told.as_ref())
    }
}
