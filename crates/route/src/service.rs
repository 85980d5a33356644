use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use incumbent::{Leader, Node};
use tower_service::Service;

use crate::RouteLayer;
use crate::address::location;
use crate::elsewhere::Elsewhere;
use crate::target::{Found, Target};

/// The service that [`RouteLayer`] makes.
#[derive(Clone, Debug)]
pub struct Route<S, T, E> {
    pub(crate) inner: S,
    pub(crate) layer: RouteLayer<T, E>,
}

impl<S, T, E, B, R> Service<Request<B>> for Route<S, T, E>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    T: Target,
    E: Elsewhere<B, R>,
    R: From<String> + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        match self.layer.target.find(&parts, self.layer.settings.no_older) {
            Found::Anybody => Box::pin(self.inner.call(Request::from_parts(parts, body))),
            Found::Here(term) => {
                parts.extensions.insert((*term).clone());
                let serving = self.inner.call(Request::from_parts(parts, body));
                Box::pin(async move {
                    match term.guard(serving).await {
                        Some(answer) if !term.trust_left().is_zero() => answer,
                        Some(_) | None => Ok(text(StatusCode::SERVICE_UNAVAILABLE, CUT_OFF)),
                    }
                })
            }
            Found::There(leader) => {
                let answer = self.elsewhere(parts, body, &leader);
                Box::pin(async move { Ok(answer.await) })
            }
            Found::Nobody(why) => Box::pin(std::future::ready(Ok(self.later(&why)))),
        }
    }
}

const CUT_OFF: &str = "this node stopped leading while it answered: what became of the request is \
                       unknown";

impl<S, T: Target, E> Route<S, T, E> {
    fn elsewhere<B, R>(
        &self,
        parts: Parts,
        body: B,
        leader: &Leader,
    ) -> Pin<Box<dyn Future<Output = Response<R>> + Send>>
    where
        E: Elsewhere<B, R>,
        R: From<String> + Send + 'static,
    {
        let RouteLayer { target, elsewhere, settings } = &self.layer;
        let node = target.node();
        let answer = location(&parts, leader, node, &settings.scheme).and_then(|at| {
            let here = node.map_or("?", Node::name);
            let answer = elsewhere.answer(Request::from_parts(parts, body), at, here);
            answer.ok_or_else(|| format!("this node doesn't lead; {:?} does", leader.node))
        });
        answer.unwrap_or_else(|why| Box::pin(std::future::ready(self.later(&why))))
    }

    /// Nothing was done, and it may be tried again.
    fn later<R: From<String>>(&self, why: &str) -> Response<R> {
        let mut answer = text(StatusCode::SERVICE_UNAVAILABLE, why);
        let seconds = self.layer.settings.retry_after.as_secs_f64().ceil();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let seconds = HeaderValue::from(seconds as u64);
        answer.headers_mut().insert(RETRY_AFTER, seconds);
        answer
    }
}

pub(crate) fn text<R: From<String>>(status: StatusCode, said: &str) -> Response<R> {
    let mut answer = Response::new(R::from(format!("{said}\n")));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
