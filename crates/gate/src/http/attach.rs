use std::task::{Context, Poll};

use http::{HeaderValue, Request};
use tower_layer::Layer;
use tower_service::Service;

use super::HEADER;
use crate::Token;

/// Puts a term on every request, for the client of a leader: made with the term, gone with it.
#[derive(Clone, Debug)]
pub struct AttachLayer {
    value: Option<HeaderValue>,
}

impl AttachLayer {
    /// From a `&Term`, a `&Duty`, a `&Run` or a [`Token`].
    pub fn new(token: impl Into<Token>) -> Self {
        // What is written there is printable ASCII, so there always is one.
        Self { value: HeaderValue::try_from(token.into().to_string()).ok() }
    }
}

impl<S> Layer<S> for AttachLayer {
    type Service = Attach<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Attach { inner, value: self.value.clone() }
    }
}

/// What [`AttachLayer`] makes.
#[derive(Clone, Debug)]
pub struct Attach<S> {
    inner: S,
    value: Option<HeaderValue>,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Attach<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(value) = &self.value {
            request.headers_mut().insert(HEADER, value.clone());
        }
        self.inner.call(request)
    }
}
