//! Bodies that go on: JSON lines or server-sent events.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use http_body::{Body as HttpBody, Frame};
use serde_json::Value;
use tokio::sync::mpsc;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Lines,
    Events,
}

impl Format {
    /// As the client asks for.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
        let mut kinds = accepts.flat_map(|it| it.split(','));
        if kinds.any(|it| it.trim().starts_with("text/event-stream")) {
            Self::Events
        } else {
            Self::Lines
        }
    }

    /// One line of a stream.
    pub(crate) fn line(self, event: &str, data: &Value) -> Bytes {
        match self {
            Self::Lines => Bytes::from(format!("{data}\n")),
            Self::Events => Bytes::from(format!("event: {event}\ndata: {data}\n\n")),
        }
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Lines => "application/x-ndjson",
            Self::Events => "text/event-stream",
        })
    }
}

/// What is read by the connection, and what happens when it is gone.
pub(crate) struct Lines<G> {
    receiver: mpsc::Receiver<Bytes>,
    /// Dropped with the stream: when it was sent, or the connection is over.
    guard: G,
}

/// Is told when a line is handed to the connection.
pub(crate) trait Taken {
    fn taken(&self);
}

impl Taken for () {
    fn taken(&self) {}
}

impl<G: Taken + Send + Unpin + 'static> Lines<G> {
    /// The response that streams what is sent.
    pub(crate) fn response(format: Format, receiver: mpsc::Receiver<Bytes>, guard: G) -> Response {
        let mut response = Response::new(Body::new(Self { receiver, guard }));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, format.content_type());
        // Proxies that buffer would keep lines to themselves (F66).
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }
}

impl<G: Taken + Send + Unpin + 'static> HttpBody for Lines<G> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let polled = this.receiver.poll_recv(context);
        if let Poll::Ready(Some(_)) = &polled {
            this.guard.taken();
        }
        polled.map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}
