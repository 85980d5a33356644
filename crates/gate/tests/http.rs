//! The header and the layers for tower, with a gate that is shared and one that forgets.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response, StatusCode, header};
use incumbent_gate::http::{AttachLayer, GateLayer, HEADER, token};
use incumbent_gate::{Advisory, GateError, Token};
use incumbent_proving::server;
use tower_layer::Layer as _;
use tower_service::Service;

/// A server's handler: counts what reaches it, and says under which term.
#[derive(Clone, Default)]
struct Handler {
    reached: Arc<AtomicU64>,
}

impl Service<Request<()>> for Handler {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        self.reached.fetch_add(1, Ordering::SeqCst);
        let token: &Token = request.extensions().get().expect("the token is handed on");
        ready(Ok(Response::new(token.to_string())))
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

async fn send<S>(service: S, lease: &str, term: u64) -> Response<String>
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible>,
{
    let mut client = AttachLayer::new(Token::new(lease, term)).layer(service);
    client.call(Request::new(())).await.expect("an answer")
}

fn problem(response: &Response<String>, status: StatusCode, words: &[&str]) {
    assert_eq!(response.status(), status, "{response:?}");
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    for word in words {
        assert!(response.body().contains(word), "no {word:?} in {}", response.body());
    }
}

#[test]
fn a_lower_term_than_a_shared_gate_has_seen_is_refused_by_every_server() {
    let store = server::redis::start(&[]);
    let url = server::redis::url(&store);
    block_on(async {
        let handler = Handler::default();
        // Two processes with one gate between them; and the first after a restart.
        let serve = async || {
            let client = redis::Client::open(url.as_str()).expect("a URL");
            let connection = client.get_multiplexed_async_connection().await.expect("a connection");
            let gate = move |token: Token| {
                let mut connection = connection.clone();
                async move {
                    let (gate, none) = (format!("gate:{}", token.lease()), redis::pipe());
                    let asked =
                        incumbent_gate::redis::admit(&mut connection, &gate, &token, &[], &none);
                    asked.await.map(|_| ())
                }
            };
            GateLayer::new(gate).layer(handler.clone())
        };
        let (first, second) = (serve().await, serve().await);
        let odd = "daily \"report\", ☃";
        let answer = send(first.clone(), odd, 7).await;
        assert_eq!(answer.body(), "daily%20%22report%22%2C%20%E2%98%83/7");
        assert_eq!(send(second.clone(), odd, 8).await.status(), StatusCode::OK);
        let refused = send(first, odd, 7).await;
        let words =
            ["urn:incumbent:superseded", "\"status\":412", "\"seen\":\"8\"", "Stop", "\\\"report"];
        problem(&refused, StatusCode::PRECONDITION_FAILED, &words);
        problem(&send(serve().await, odd, 7).await, StatusCode::PRECONDITION_FAILED, &[]);
        assert_eq!(send(second.clone(), "other", 1).await.status(), StatusCode::OK);
        assert_eq!(handler.reached.load(Ordering::SeqCst), 3, "what is refused reaches nobody");

        let mut bare = second.clone();
        let refused = bare.call(Request::new(())).await.expect("an answer");
        problem(&refused, StatusCode::PRECONDITION_REQUIRED, &["fence-required", "scheduler/7"]);
        let wrong = Request::builder().header(HEADER, "scheduler").body(()).expect("a request");
        let refused = bare.call(wrong).await.expect("an answer");
        problem(&refused, StatusCode::BAD_REQUEST, &["fence-unreadable", "scheduler"]);

        // Nobody knows, so nobody is let through, and nobody is told that its term is over.
        drop(store);
        let refused = send(second, odd, 9).await;
        problem(&refused, StatusCode::SERVICE_UNAVAILABLE, &["gate-unreachable"]);
        assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    });
}

#[test]
fn a_gate_in_memory_forgets_and_is_called_advisory() {
    block_on(async {
        let serve = || {
            let memory = Arc::new(Advisory::new());
            let gate = move |token: Token| ready(memory.admit(&token));
            GateLayer::new(gate).layer(Handler::default())
        };
        let server = serve();
        assert_eq!(send(server.clone(), "x", 8).await.status(), StatusCode::OK);
        let refused = send(server.clone(), "x", 7).await;
        problem(&refused, StatusCode::PRECONDITION_FAILED, &["superseded"]);
        assert_eq!(send(server, "x", 8).await.status(), StatusCode::OK);
        // After a restart it lets through what it had refused.
        assert_eq!(send(serve(), "x", 7).await.status(), StatusCode::OK);
        let memory = Advisory::new();
        memory.admit(&Token::new("x", 8)).expect("the first");
        let refused = memory.admit(&Token::new("x", 7));
        assert!(matches!(refused, Err(GateError::Superseded { term: 8 })));
    });
}

#[test]
fn a_header_that_comes_twice_is_no_token() {
    let mut headers = HeaderMap::new();
    assert_eq!(token(&headers), Ok(None));
    headers.append(HEADER, "x/7".parse().expect("a value"));
    assert_eq!(token(&headers), Ok(Some(Token::new("x", 7))));
    headers.append(HEADER, "x/9".parse().expect("a value"));
    assert!(token(&headers).is_err());
}
