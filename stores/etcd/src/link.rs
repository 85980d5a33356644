//! One connection to one endpoint: HTTP/2 by hyper, gRPC by tonic.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use incumbent_core::store::StoreError;
use incumbent_store_common::{Endpoint, chain, encrypt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

use crate::options::EtcdOptions;
use crate::wire::{WATCH, WatchRequest, WatchResponse};

/// A proof of who asks, as etcd gave it.
pub(crate) type TokenText = MetadataValue<Ascii>;

/// A silent connection is asked for a sign of life while something waits for it. etcd cuts off
/// those who ask more often than every 5 s, or while nothing waits.
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(5);

/// Clones share the connection, which closes with the last.
#[derive(Clone)]
pub(crate) struct Link {
    sender: SendRequest<Body>,
    origin: Uri,
    /// A channel that ends with the connection, however it ends.
    ended: watch::Receiver<()>,
}

/// What came instead of an answer.
pub(crate) struct Unanswered {
    pub(crate) status: Status,
    /// Whether the server may have got the request.
    pub(crate) sent: bool,
}

/// A watch that goes on. Dropping it ends it on the server too.
pub(crate) struct Watching {
    answers: Streaming<WatchResponse>,
    _questions: mpsc::Sender<WatchRequest>,
}

impl Watching {
    /// What the server says next; nothing once the watch has ended, for whatever reason.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<WatchResponse>> {
        let next = Pin::new(&mut self.answers).poll_next(context);
        next.map(|response| response.and_then(Result::ok))
    }

    /// The same, waited for.
    pub(crate) async fn next(&mut self) -> Option<WatchResponse> {
        poll_fn(|context| self.poll_next(context)).await
    }
}

impl Link {
    pub(crate) async fn open(
        options: &EtcdOptions,
        endpoint: &Endpoint,
    ) -> Result<Self, StoreError> {
        let server = format!("etcd at {endpoint}");
        let fail = |error: &dyn std::fmt::Display| {
            StoreError::unavailable(format!("{server} can't be reached: {error}"))
        };
        let address = (endpoint.host.as_str(), endpoint.port);
        let stream = TcpStream::connect(address).await.map_err(|error| fail(&error))?;
        stream.set_nodelay(true).map_err(|error| fail(&error))?;
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let origin = Uri::builder().scheme(scheme).authority(endpoint.to_string());
        let origin = origin.path_and_query("/").build().map_err(|error| {
            StoreError::rejected(format!("the endpoint {endpoint} can't be asked: {error}"))
        })?;
        let hands = match &options.tls {
            None => shake_hands(stream).await,
            Some(files) => {
                // Without naming the protocol the server takes the connection for plain HTTP.
                let stream = encrypt(files, &server, &endpoint.host, &[b"h2"], stream).await?;
                shake_hands(stream).await
            }
        };
        let (sender, ended) = hands.map_err(|error| fail(&error))?;
        Ok(Self { sender, origin, ended })
    }

    /// Whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.sender.is_closed() || self.ended.has_changed().is_err()
    }

    /// Ready once the connection has ended.
    pub(crate) async fn ended(&self) {
        while self.ended.clone().changed().await.is_ok() {}
    }

    /// Asks one question.
    pub(crate) async fn ask<Q, A>(
        &self,
        path: &'static str,
        question: Q,
        token: Option<&TokenText>,
    ) -> Result<A, Unanswered>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let (mut grpc, sent) = self.grpc();
        let fail = |status| Unanswered { status, sent: sent.load(Ordering::Acquire) };
        grpc.ready().await.map_err(|error| fail(Status::unavailable(chain(&error))))?;
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        let answer = grpc.unary(request(question, token), path, codec).await;
        answer.map(tonic::Response::into_inner).map_err(fail)
    }

    /// Asks for all that happens from now on, until what this returns is dropped.
    pub(crate) async fn watch(
        &self,
        question: WatchRequest,
        token: Option<&TokenText>,
    ) -> Result<Watching, Unanswered> {
        let (mut grpc, sent) = self.grpc();
        let fail = |status| Unanswered { status, sent: sent.load(Ordering::Acquire) };
        grpc.ready().await.map_err(|error| fail(Status::unavailable(chain(&error))))?;
        // The server ends a watch whose questions end, and hyper lets go of a request only then.
        let (questions, queue) = mpsc::channel(1);
        let _ = questions.try_send(question);
        let queue = ReceiverStream::new(queue);
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        let path = PathAndQuery::from_static(WATCH);
        let answer = grpc.streaming(request(queue, token), path, codec).await.map_err(fail)?;
        Ok(Watching { answers: answer.into_inner(), _questions: questions })
    }

    fn grpc(&self) -> (Grpc<Call>, Arc<AtomicBool>) {
        let sent = Arc::new(AtomicBool::new(false));
        let call = Call { sender: self.sender.clone(), sent: Arc::clone(&sent) };
        let grpc = Grpc::with_origin(call, self.origin.clone());
        // The server sends what it was asked for, however many records that is.
        (grpc.max_decoding_message_size(usize::MAX), sent)
    }
}

/// The connection runs on the runtime on which this is called.
async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> hyper::Result<(SendRequest<Body>, watch::Receiver<()>)> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let (running, ended) = watch::channel(());
    Handle::current().spawn(async move {
        // Whoever waits for an answer is told the error as well.
        let _ = connection.await;
        drop(running);
    });
    Ok((sender, ended))
}

/// Asks a member that lost its leader to say so at once instead of waiting for one.
fn request<T>(message: T, token: Option<&TokenText>) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert("hasleader", MetadataValue::from_static("true"));
    if let Some(token) = token {
        metadata.insert("token", token.clone());
    }
    request
}

/// One request on the connection, which remembers whether it may have left.
struct Call {
    sender: SendRequest<Body>,
    sent: Arc<AtomicBool>,
}

impl Service<Request<Body>> for Call {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let sent = Arc::clone(&self.sent);
        sent.store(true, Ordering::Release);
        let sending = self.sender.try_send_request(request);
        Box::pin(async move {
            sending.await.map_err(|mut error| {
                // hyper gives the request back if not a byte of it was written.
                if error.take_message().is_some() {
                    sent.store(false, Ordering::Release);
                }
                error.into_error()
            })
        })
    }
}
