//! Nodes with an HTTP server each, and a client that follows nothing by itself.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use axum::{Extension, Router};
use http::StatusCode;
use http::header::{LOCATION, RETRY_AFTER};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use incumbent::{Node, OpenStore, Term};
use incumbent_route::HOP;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("takes too long")
}

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "never came true: {what}");
}

/// A node that can be reached.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) slow: Slow,
    address: String,
    listener: Arc<Mutex<Option<TcpListener>>>,
    server: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// Tells that the slow handler was reached.
#[derive(Clone, Default)]
pub(crate) struct Slow(pub(crate) Arc<Notify>);

impl Site {
    pub(crate) async fn bind(name: &str, store: &OpenStore) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let quiet = Duration::from_millis(100);
        let builder = Node::builder().cluster("test").name(name).address(&address);
        let node = soon(builder.rebalance_after(quiet).join(store)).await.unwrap();
        let listener = Arc::new(Mutex::new(Some(listener)));
        Self { node, slow: Slow::default(), address, listener, server: Arc::default() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn serve<L>(&self, layer: L)
    where
        L: tower_layer::Layer<axum::routing::Route> + Clone + Send + Sync + 'static,
        L::Service: tower_service::Service<Request, Response = Response, Error = std::convert::Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        <L::Service as tower_service::Service<Request>>::Future: Send + 'static,
    {
        let listener = self.listener.lock().unwrap().take().unwrap();
        let state = (self.node.name().to_owned(), self.slow.clone());
        let app = Router::new()
            .route("/slow", any(slow))
            .fallback(any(tell))
            .layer(layer)
            .with_state(state);
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        *self.server.lock().unwrap() = Some(server);
    }

    pub(crate) async fn close(&self) {
        let server = self.server.lock().unwrap().take().unwrap();
        server.abort();
        let _ = server.await;
    }
}

async fn tell(
    State((node, _)): State<(String, Slow)>,
    term: Option<Extension<Term>>,
    request: Request,
) -> String {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1000).await.unwrap();
    let body = String::from_utf8_lossy(&body);
    let term = term.map_or("none".to_owned(), |term| term.fence().to_string());
    let by =
        parts.headers.get(HOP).map_or(String::new(), |by| format!(" by {}", by.to_str().unwrap()));
    format!("{node}: {} {} {body} term {term}{by}", parts.method, parts.uri)
}

async fn slow(State((_, slow)): State<(String, Slow)>) -> String {
    slow.0.notify_one();
    tokio::time::sleep(PATIENCE).await;
    "too late".to_owned()
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) location: Option<String>,
    pub(crate) retry_after: Option<String>,
    pub(crate) text: String,
}

pub(crate) fn client() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).build_http()
}

pub(crate) async fn fetch(site: &Site, method: &str, path: &str, body: &'static str) -> Answer {
    let request = http::Request::builder().method(method).uri(format!("{}{path}", site.url()));
    let answer = soon(client().request(request.body(Body::from(body)).unwrap())).await.unwrap();
    let (parts, body) = answer.into_parts();
    let header = |name| {
        parts.headers.get(name).map(|it: &http::HeaderValue| it.to_str().unwrap().to_owned())
    };
    let bytes = axum::body::to_bytes(Body::new(body), 10_000).await.unwrap();
    let text = String::from_utf8(bytes.into()).unwrap();
    Answer {
        status: parts.status,
        location: header(LOCATION),
        retry_after: header(RETRY_AFTER),
        text,
    }
}

/// How a program forwards with hyper's client.
pub(crate) fn hyper_forward() -> impl Fn(Request) -> ForwardFuture + Clone + Send + Sync + 'static {
    let client = client();
    move |request| {
        let sent = client.request(request);
        Box::pin(async move { Ok(sent.await?.map(Body::new)) })
    }
}

type ForwardFuture = std::pin::Pin<
    Box<dyn Future<Output = Result<Response, hyper_util::client::legacy::Error>> + Send>,
>;
