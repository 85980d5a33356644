//! What becomes of requests that somebody else has to answer.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;

use http::header::{self, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode, Uri};

use crate::HOP;
use crate::service::text;

/// An answer that may take a while.
pub type Answer<R> = Pin<Box<dyn Future<Output = Response<R>> + Send>>;

/// What becomes of a request that somebody else has to answer.
pub trait Elsewhere<B, R>: Clone {
    /// Answers it, or doesn't, and then it is refused. It is for this URL; this node is called `here`.
    fn answer(&self, request: Request<B>, at: Uri, here: &str) -> Option<Answer<R>>;
}

/// Tells the client where to go: 307, so that it sends method and body again.
#[derive(Clone, Copy, Debug)]
pub struct Redirect;

/// Sends it on; see [`RouteLayer::forward`](crate::RouteLayer::forward).
#[derive(Clone, Copy, Debug)]
pub struct Forward<F>(pub(crate) F);

/// Refuses it; see [`RouteLayer::refuse`](crate::RouteLayer::refuse).
#[derive(Clone, Copy, Debug)]
pub struct Refuse;

impl<B, R: From<String> + Send + 'static> Elsewhere<B, R> for Redirect {
    fn answer(&self, request: Request<B>, at: Uri, _: &str) -> Option<Answer<R>> {
        if request.headers().contains_key(HOP) {
            // Whoever sent it on would only pass this on in turn.
            return None;
        }
        let location = HeaderValue::try_from(at.to_string()).ok()?;
        let mut answer = text(StatusCode::TEMPORARY_REDIRECT, &format!("the leader is at {at}"));
        answer.headers_mut().insert(header::LOCATION, location);
        // It holds for this request alone.
        answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(Box::pin(std::future::ready(answer)))
    }
}

impl<B, R> Elsewhere<B, R> for Refuse {
    fn answer(&self, _: Request<B>, _: Uri, _: &str) -> Option<Answer<R>> {
        None
    }
}

impl<B, R, F, Fut, X> Elsewhere<B, R> for Forward<F>
where
    R: From<String> + Send + 'static,
    F: Fn(Request<B>) -> Fut + Clone,
    Fut: Future<Output = Result<Response<R>, X>> + Send + 'static,
    X: Display,
{
    fn answer(&self, mut request: Request<B>, at: Uri, here: &str) -> Option<Answer<R>> {
        if request.headers().contains_key(HOP) {
            return None;
        }
        for name in ENDS_HERE {
            request.headers_mut().remove(name);
        }
        let here = HeaderValue::from_str(here).unwrap_or(HeaderValue::from_static("?"));
        request.headers_mut().insert(HOP, here);
        *request.uri_mut() = at.clone();
        *request.version_mut() = http::Version::HTTP_11;
        let sent = (self.0)(request);
        Some(Box::pin(async move {
            sent.await.unwrap_or_else(|error| {
                let why = format!("{at} could not be asked, or did not answer: {error}");
                text(StatusCode::BAD_GATEWAY, &why)
            })
        }))
    }
}

/// What is about one connection, and the server that it was for.
const ENDS_HERE: [HeaderName; 8] = [
    header::HOST,
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
];
