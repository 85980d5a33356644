//! Bodies that go on: JSON lines or server-sent events.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
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

/// So much is handed to a connection at once, which copies it.
const SLICE: usize = 16 * 1024;

/// The next that is handed to a connection of this, which others may share.
fn slice(rest: &mut Bytes) -> Bytes {
    rest.split_to(rest.len().min(SLICE))
}

/// A body that is shared with others until it is sent, so that those who don't read it take no room.
pub(crate) struct Slices(pub(crate) Bytes);

impl HttpBody for Slices {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let more = !self.0.is_empty();
        Poll::Ready(more.then(|| Ok(Frame::data(slice(&mut self.0)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// What is read by the connection, and what happens when it is gone.
pub(crate) struct Lines<G> {
    receiver: mpsc::Receiver<Bytes>,
    /// What is left of the last line.
    rest: Bytes,
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
        let mut response = Response::new(Body::new(Self { receiver, rest: Bytes::new(), guard }));
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
        if this.rest.is_empty() {
            match ready!(this.receiver.poll_recv(context)) {
                Some(line) => this.rest = line,
                None => return Poll::Ready(None),
            }
        }
        let next = slice(&mut this.rest);
        if this.rest.is_empty() {
            this.guard.taken();
        }
        Poll::Ready(Some(Ok(Frame::data(next))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn frames(body: impl HttpBody<Data = Bytes> + Unpin) -> Vec<Bytes> {
        let (mut body, mut frames) = (body, Vec::new());
        while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            frames.push(frame.into_data().ok().unwrap());
        }
        frames
    }

    #[tokio::test]
    async fn what_is_large_is_shared_and_handed_over_in_slices() {
        let text = Bytes::from(vec![7; 3 * SLICE + 1]);
        assert_eq!(Slices(text.clone()).size_hint().exact(), Some(text.len() as u64));
        let (sender, receiver) = mpsc::channel(2);
        sender.send(text.clone()).await.unwrap();
        sender.send(Bytes::from_static(b"next")).await.unwrap();
        drop(sender);
        let lines = Lines { receiver, rest: Bytes::new(), guard: () };
        for (frames, more) in [(frames(Slices(text.clone())).await, 0), (frames(lines).await, 1)] {
            assert_eq!(frames.len(), 4 + more);
            assert!(frames.iter().all(|frame| frame.len() <= SLICE));
            assert_eq!(frames[0].as_ptr(), text.as_ptr(), "nothing was copied");
            assert_eq!(frames[..4].concat(), text);
        }
    }
}
