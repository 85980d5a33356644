//! One table of routes, of which the router and the OpenAPI document are made.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, OriginalUri, RawPathParams, Request};
use axum::http::{HeaderName, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::Value;

use crate::access::Role;
use crate::body;
use crate::call::{Answer, Call, check_escapes, query};
use crate::document::Schemas;
use crate::peer::Peer;
use crate::problem::{METHOD, NOT_FOUND, Problem};
use crate::routes;
use crate::service::Service;

/// The largest body.
const BODY: usize = 64 * 1024;

/// The largest that lists the duties of a family.
const LIST: usize = 1024 * 1024;

/// What the query of all that is about a cluster may have.
pub(crate) const CLUSTER: (&str, &str) =
    ("cluster", "of this cluster, one of those that /v1/clusters names; without it the joined one");

/// One row of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Who may; anybody without it.
    pub(crate) role: Option<Role>,
    pub(crate) summary: &'static str,
    /// What the body is.
    pub(crate) body: Option<Shape>,
    /// What the query may have, and what that means.
    pub(crate) query: &'static [(&'static str, &'static str)],
    /// Whether it is about a cluster that the query may name, and otherwise about the joined one.
    pub(crate) any_cluster: bool,
    /// What is answered.
    pub(crate) answers: Vec<(u16, Option<Shape>, &'static str)>,
    /// The kinds of problems beside those that any request may have.
    pub(crate) problems: &'static [u16],
    pub(crate) run: Run,
}

/// The schema of a document.
pub(crate) type Shape = fn(&mut Schemas) -> Value;

/// What a request is answered by.
pub(crate) type Run = Box<dyn Fn(Call) -> Running + Send + Sync>;
type Running = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Something that answers requests.
pub(crate) fn run<F, Fut>(answer: F) -> Run
where
    F: Fn(Call) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    Box::new(move |call| Box::pin(answer(call)))
}

/// The router for the whole table.
pub(crate) fn router(service: &Service) -> Router {
    let mut paths: BTreeMap<&'static str, MethodRouter> = BTreeMap::new();
    for route in routes::table() {
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { continue };
        let (path, route, service) = (route.path, Arc::new(route), service.clone());
        let handler = move |request: Request| {
            let (route, service) = (Arc::clone(&route), service.clone());
            async move { answer(&service, &route, request).await }
        };
        let known = paths.remove(path).unwrap_or_default();
        paths.insert(path, known.merge(on(filter, handler)));
    }
    let mut router = Router::new();
    for (path, methods) in paths {
        router = router.route(path, methods.fallback(no_method));
    }
    router.fallback(no_path)
}

async fn answer(service: &Service, route: &Route, request: Request) -> Response {
    match admitted(service, route, request).await {
        Ok(response) => finished(response),
        Err(problem) => finished(problem.into_response()),
    }
}

async fn admitted(service: &Service, route: &Route, request: Request) -> Answer {
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Arc<Peer>>().cloned();
    let access = service.access();
    let who = access.admit(&parts.method, &parts.headers, peer.as_deref(), route.role)?;
    check_escapes(parts.uri.path())?;
    let parameters = RawPathParams::from_request_parts(&mut parts, &())
        .await
        .map_err(|_| Problem::bad("the path isn't UTF-8 once it is decoded"))?;
    let parameters =
        parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let most = if route.path.ends_with("/serve") { LIST } else { BODY };
    let body = body::read(body, most, body::PATIENCE).await?;
    let mut query = query(parts.uri.query().unwrap_or_default())?;
    let named = if route.any_cluster { take_cluster(&mut query)? } else { None };
    let watched = Arc::clone(service.clusters().find(named.as_deref())?);
    let original = parts.extensions.get::<OriginalUri>().map(|uri| uri.0.path().to_owned());
    let path = original.unwrap_or_else(|| parts.uri.path().to_owned());
    let (service, headers) = (service.clone(), parts.headers);
    (route.run)(Call { service, watched, path, parameters, query, headers, body, peer, who }).await
}

/// The cluster that the query names, which is no business of what answers it.
fn take_cluster(query: &mut Vec<(String, String)>) -> Result<Option<String>, Problem> {
    let (named, rest): (Vec<_>, Vec<_>) =
        std::mem::take(query).into_iter().partition(|(name, _)| name == CLUSTER.0);
    *query = rest;
    // Which of two is meant isn't to be guessed where something may be changed.
    if named.len() > 1 {
        return Err(Problem::bad("the query names the cluster twice: name it once"));
    }
    Ok(named.into_iter().next().map(|(_, name)| name))
}

async fn no_path(uri: Uri) -> Response {
    let path: String = uri.path().chars().take(128).collect();
    let said = format!("there is nothing at {path}: /openapi.json lists all paths");
    finished(Problem::new(&NOT_FOUND, said).into_response())
}

async fn no_method(method: Method) -> Response {
    let said = format!("{method} isn't allowed: the header Allow lists the methods that are");
    finished(Problem::new(&METHOD, said).into_response())
}

/// With what every answer has.
pub(crate) fn finished(mut response: Response) -> Response {
    const POLICY: &str =
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::REFERRER_POLICY, "no-referrer");
    response
}
