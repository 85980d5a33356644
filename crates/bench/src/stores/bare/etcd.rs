use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result, ensure};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;
use tower_service::Service;

use super::{Bare, Connecting, Swapping, fresh, value};

/// One transaction that compares a revision and puts.
pub(crate) struct Etcd {
    grpc: Grpc<Call>,
    key: Vec<u8>,
    revision: i64,
    round: u64,
}

impl Etcd {
    pub(crate) fn connect(url: &str) -> Connecting<'_> {
        Box::pin(async move {
            let authority = url.trim_start_matches("etcd://").split(['/', '?']).next();
            let authority = authority.context("no host in the URL")?;
            let stream = TcpStream::connect(authority).await?;
            stream.set_nodelay(true)?;
            let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
            let (sender, connection) = handshake.await?;
            tokio::runtime::Handle::current().spawn(async move {
                let _ = connection.await;
            });
            let origin: Uri = format!("http://{authority}/").parse()?;
            let grpc = Grpc::with_origin(Call(sender), origin);
            let key = fresh().into_bytes();
            Ok(Box::new(Self { grpc, key, revision: 0, round: 0 }) as Box<dyn Bare>)
        })
    }

    async fn transact(&mut self) -> Result<()> {
        self.round += 1;
        let put = Put { key: self.key.clone(), value: value(self.round).into_bytes() };
        let request = Transaction {
            compare: vec![Compare {
                target: 2,
                key: self.key.clone(),
                mod_revision: self.revision,
            }],
            success: vec![Operation { put: Some(put) }],
        };
        self.grpc.ready().await?;
        let path = PathAndQuery::from_static("/etcdserverpb.KV/Txn");
        let codec = ProstCodec::<Transaction, Answer>::default();
        let answer = self.grpc.unary(tonic::Request::new(request), path, codec).await?.into_inner();
        ensure!(answer.succeeded, "it was not swapped");
        self.revision = answer.header.context("no revision")?.revision;
        Ok(())
    }
}

impl Bare for Etcd {
    fn swap(&mut self) -> Swapping<'_> {
        Box::pin(self.transact())
    }
}

#[derive(Clone, PartialEq, Message)]
struct Transaction {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<Operation>,
}

#[derive(Clone, PartialEq, Message)]
struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(int64, tag = "6")]
    mod_revision: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(message, optional, tag = "2")]
    put: Option<Put>,
}

#[derive(Clone, PartialEq, Message)]
struct Put {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(int64, tag = "3")]
    revision: i64,
}

/// One connection, as tonic wants it.
#[derive(Clone)]
struct Call(SendRequest<Body>);

impl Service<Request<Body>> for Call {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
