use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, StatusCode, header};
use tower_layer::Layer;
use tower_service::Service;

use super::{HEADER, token};
use crate::{GateError, Token};

/// Lets no request through with a lower term than its gate has seen.
#[derive(Clone, Debug)]
pub struct GateLayer<G> {
    gate: G,
}

impl<G> GateLayer<G> {
    /// `gate` shows a token to a gate that is shared and durable, and says what that said. It keeps
    /// leases apart, and refuses those that have no business here.
    pub const fn new(gate: G) -> Self {
        Self { gate }
    }
}

impl<S, G: Clone> Layer<S> for GateLayer<G> {
    type Service = Gate<S, G>;

    fn layer(&self, inner: S) -> Self::Service {
        Gate { inner, gate: self.gate.clone() }
    }
}

/// What [`GateLayer`] makes.
#[derive(Clone, Debug)]
pub struct Gate<S, G> {
    inner: S,
    gate: G,
}

type Answer<R, E> = Pin<Box<dyn Future<Output = Result<Response<R>, E>> + Send>>;

impl<S, G, F, E, B, R> Service<Request<B>> for Gate<S, G>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    G: Fn(Token) -> F,
    F: Future<Output = Result<(), GateError<E>>> + Send + 'static,
    E: Send,
    B: Send + 'static,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Answer<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The one that said it is ready is the one to be called.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let shown = match token(request.headers()) {
            Ok(Some(shown)) => shown,
            Ok(None) => return Box::pin(async { Ok(REQUIRED.response(&[])) }),
            Err(wrong) => {
                let said = wrong.to_string();
                return Box::pin(async move { Ok(UNREADABLE.response(&[("detail", &said)])) });
            }
        };
        let asked = (self.gate)(shown.clone());
        Box::pin(async move {
            match asked.await {
                Ok(()) => {
                    request.extensions_mut().insert(shown);
                    inner.call(request).await
                }
                Err(refusal) => Ok(refused(&shown, &refusal)),
            }
        })
    }
}

fn refused<R: From<String>, E>(shown: &Token, refusal: &GateError<E>) -> Response<R> {
    match refusal {
        GateError::Superseded { term } => SUPERSEDED.response(&[
            (
                "detail",
                &format!(
                    "Term {} of lease \"{}\" is over: term {term} has been here. Stop this work and \
                     don't send the request again: somebody else is doing it.",
                    shown.term(),
                    shown.lease()
                ),
            ),
            ("lease", shown.lease()),
            ("term", &shown.term().to_string()),
            ("seen", &term.to_string()),
        ]),
        // What went wrong there may hold secrets and is none of the client's business.
        GateError::Unreadable(_) | GateError::Changed | GateError::Unreachable(_) => {
            let mut response = UNREACHABLE.response(&[]);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

struct Problem {
    status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: &'static str,
}

const SUPERSEDED: Problem = Problem {
    status: StatusCode::PRECONDITION_FAILED,
    kind: "superseded",
    title: "The term is over",
    detail: "",
};

const REQUIRED: Problem = Problem {
    status: StatusCode::PRECONDITION_REQUIRED,
    kind: "fence-required",
    title: "A term is required",
    detail: "Send the header Incumbent-Fence with the lease and the term under which this is done, \
             such as scheduler/7.",
};

const UNREADABLE: Problem = Problem {
    status: StatusCode::BAD_REQUEST,
    kind: "fence-unreadable",
    title: "The header Incumbent-Fence can't be read",
    detail: "",
};

const UNREACHABLE: Problem = Problem {
    status: StatusCode::SERVICE_UNAVAILABLE,
    kind: "gate-unreachable",
    title: "Whether the term stands is unknown",
    detail: "The gate that remembers terms couldn't be asked, and nothing was done. Try again as long \
             as you hold the term.",
};

impl Problem {
    /// As RFC 9457 has it.
    fn response<R: From<String>>(&self, members: &[(&str, &str)]) -> Response<R> {
        let Self { status, kind, title, detail } = self;
        let mut text = format!(
            "{{\"type\":\"urn:incumbent:{kind}\",\"title\":\"{title}\",\"status\":{}",
            status.as_u16()
        );
        let own = [("detail", *detail)].into_iter().filter(|(_, detail)| !detail.is_empty());
        for (name, value) in own.chain(members.iter().copied()) {
            text.push_str(",\"");
            text.push_str(name);
            text.push_str("\":");
            quote(&mut text, value);
        }
        text.push('}');
        let mut response = Response::new(R::from(text));
        *response.status_mut() = *status;
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.headers_mut().insert(header::VARY, HEADER.into());
        response
    }
}

/// A string of JSON.
fn quote(text: &mut String, value: &str) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            control if control.is_control() => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_lease_is_called_is_a_string_of_json() {
        let mut text = String::new();
        quote(&mut text, "a\"b\\c\n\u{7f}☃");
        assert_eq!(text, "\"a\\\"b\\\\c\\u000a\\u007f☃\"");
    }
}
