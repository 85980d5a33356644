//! One connection to one endpoint: HTTP/2 by hyper, gRPC by tonic.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use incumbent_core::store::StoreError;
use incumbent_store_common::Endpoint;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

use crate::options::EtcdOptions;
use crate::tls;
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
    suspect: Arc<AtomicBool>,
}

/// What came instead of an answer.
pub(crate) struct Failure {
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
    pub(crate) async fn next(&mut self) -> Option<WatchResponse> {
        self.answers.message().await.ok().flatten()
    }
}

impl Link {
    pub(crate) async fn open(
        options: &EtcdOptions,
        endpoint: &Endpoint,
        handle: &Handle,
    ) -> Result<Self, StoreError> {
        let fail = |error: &dyn std::fmt::Display| {
            StoreError::unavailable(format!("etcd at {endpoint} can't be reached: {error}"))
        };
        let address = (endpoint.host.as_str(), endpoint.port);
        let stream = TcpStream::connect(address).await.map_err(|error| fail(&error))?;
        stream.set_nodelay(true).map_err(|error| fail(&error))?;
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let origin = Uri::builder().scheme(scheme).authority(endpoint.to_string());
        let origin = origin.path_and_query("/").build().map_err(|error| {
            StoreError::rejected(format!("the endpoint {endpoint} can't be asked: {error}"))
        })?;
        let sender = match &options.tls {
            None => shake_hands(stream, handle).await,
            Some(tls) => shake_hands(tls::encrypt(tls, endpoint, stream).await?, handle).await,
        };
        let sender = sender.map_err(|error| fail(&error))?;
        Ok(Self { sender, origin, suspect: Arc::default() })
    }

    /// Whether the next request may use it.
    pub(crate) fn is_fit(&self) -> bool {
        !self.sender.is_closed() && !self.suspect.load(Ordering::Acquire)
    }

    /// Lets later requests open another connection, to the next endpoint. Those under way go on.
    pub(crate) fn suspect(&self) {
        self.suspect.store(true, Ordering::Release);
    }

    /// Asks one question.
    pub(crate) async fn ask<Q, A>(
        &self,
        path: &'static str,
        question: Q,
        token: Option<&TokenText>,
    ) -> Result<A, Failure>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let (mut grpc, sent) = self.grpc();
        let fail = |status| Failure { status, sent: sent.load(Ordering::Acquire) };
        grpc.ready().await.map_err(|error| fail(Status::unavailable(told(&error))))?;
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
    ) -> Result<Watching, Failure> {
        let (mut grpc, sent) = self.grpc();
        let fail = |status| Failure { status, sent: sent.load(Ordering::Acquire) };
        grpc.ready().await.map_err(|error| fail(Status::unavailable(told(&error))))?;
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

/// A request under way. Unless it lands, later ones use another connection: whoever gave up
/// waiting did so because no answer came.
pub(crate) struct Flight<'a> {
    link: &'a Link,
    landed: bool,
}

impl<'a> Flight<'a> {
    pub(crate) fn new(link: &'a Link) -> Self {
        Self { link, landed: false }
    }

    pub(crate) fn landed(mut self) {
        self.landed = true;
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.landed {
            self.link.suspect();
        }
    }
}

async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    handle: &Handle,
) -> hyper::Result<SendRequest<Body>> {
    let mut builder = http2::Builder::new(Runtime(handle.clone()));
    builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    handle.spawn(async move {
        // Whoever waits for an answer is told the error as well.
        let _ = connection.await;
    });
    Ok(sender)
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

/// An error with its causes, each once.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Runs what hyper needs where the store lives.
#[derive(Clone)]
struct Runtime(Handle);

impl<F> hyper::rt::Executor<F> for Runtime
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
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
