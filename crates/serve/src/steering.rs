//! What operators ask for. It is left in the store, and carried out by whoever leads.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use incumbent::{Asked, Strictness};

use crate::audit::note;
use crate::call::{Answer, Call, json};
use crate::documents::{AskedDocument, NothingRequest, PinRequest, ToRequest};
use crate::problem::{NOT_FOUND, Problem};

/// `POST /v1/leases/{lease}/resign`.
pub(crate) async fn resign(call: Call) -> Answer {
    call.know(&[])?;
    let NothingRequest {} = call.body()?;
    let (lease, term) = (call.parameter("lease").to_owned(), if_match(&call)?);
    let cluster = call.cluster();
    let asked = match term {
        Some(term) => cluster.request_end(&lease, term, None).await,
        None => cluster.request_resign(&lease).await,
    };
    requested(&call, "resign", lease, "", asked.map_err(Problem::from)).await
}

/// `POST /v1/leases/{lease}/transfer`.
pub(crate) async fn transfer(call: Call) -> Answer {
    call.know(&[])?;
    let ToRequest { to } = call.body()?;
    let (lease, term) = (call.parameter("lease").to_owned(), if_match(&call)?);
    let cluster = call.cluster();
    let asked = match term {
        Some(term) => cluster.request_end(&lease, term, Some(&to)).await,
        None => cluster.request_transfer(&lease, &to).await,
    };
    let detail = format!("to {to}");
    requested(&call, "transfer", lease, &detail, asked.map_err(Problem::from)).await
}

/// `POST /v1/members/{id}/evict`.
pub(crate) async fn evict(call: Call) -> Answer {
    call.know(&[])?;
    let NothingRequest {} = call.body()?;
    let id = call.parameter("id").to_owned();
    let evicted = call.cluster().evict(&id).await.map_err(Problem::from);
    let outcome = if evicted.is_ok() { "done" } else { "failed" };
    note(&call, "evict", &id, "", outcome).await;
    evicted?;
    Ok(asked(&call, "evict", id, Vec::new(), Vec::new(), "/v1/members"))
}

/// `PUT /v1/duties/{duty}/pin`.
pub(crate) async fn pin(call: Call) -> Answer {
    call.know(&[])?;
    let PinRequest { node, required } = call.body()?;
    let (duty, required) = (call.parameter("duty").to_owned(), required.unwrap_or_default());
    let strictness = if required { Strictness::Required } else { Strictness::Preferred };
    let wished = call.cluster().pin(&duty, &node, strictness).await;
    let detail = format!("on {node}{}", if required { ", nowhere else" } else { "" });
    wish(&call, "pin", duty, &detail, wished.map_err(Problem::from)).await
}

/// `POST /v1/duties/{duty}/move`.
pub(crate) async fn move_duty(call: Call) -> Answer {
    call.know(&[])?;
    let ToRequest { to } = call.body()?;
    let duty = call.parameter("duty").to_owned();
    let wished = call.cluster().move_duty(&duty, &to).await;
    wish(&call, "move", duty, &format!("to {to}"), wished.map_err(Problem::from)).await
}

/// Wishes that only name what they are about, and taking them back.
macro_rules! wishes {
    ($($(#[doc = $doc:literal])+ $name:ident($part:literal, $body:tt) = $method:ident as $said:literal;)*) => {
        $(
            $(#[doc = $doc])+
            pub(crate) async fn $name(call: Call) -> Answer {
                call.know(&[])?;
                wishes!(@body call $body);
                let target = call.parameter($part).to_owned();
                let wished = call.cluster().$method(&target).await;
                wish(&call, $said, target, "", wished.map_err(Problem::from)).await
            }
        )*
    };
    (@body $call:ident some) => { let NothingRequest {} = $call.body()?; };
    (@body $call:ident none) => {};
}

wishes! {
    /// `DELETE /v1/duties/{duty}/pin`.
    unpin("duty", none) = unpin as "unpin";
    /// `PUT /v1/duties/{duty}/pause`.
    pause("duty", some) = pause as "pause";
    /// `DELETE /v1/duties/{duty}/pause`.
    resume("duty", none) = resume as "resume";
    /// `PUT /v1/nodes/{node}/cordon`.
    cordon("node", some) = cordon as "cordon";
    /// `DELETE /v1/nodes/{node}/cordon`.
    uncordon("node", none) = uncordon as "uncordon";
    /// `PUT /v1/nodes/{node}/drain`.
    drain("node", some) = drain as "drain";
    /// `DELETE /v1/nodes/{node}/drain`.
    undrain("node", none) = undrain as "undrain";
}

/// `PUT /v1/freeze`.
pub(crate) async fn freeze(call: Call) -> Answer {
    call.know(&[])?;
    let NothingRequest {} = call.body()?;
    let wished = call.cluster().freeze().await.map_err(Problem::from);
    wish(&call, "freeze", String::new(), "", wished).await
}

/// `DELETE /v1/freeze`.
pub(crate) async fn thaw(call: Call) -> Answer {
    call.know(&[])?;
    let wished = call.cluster().thaw().await.map_err(Problem::from);
    wish(&call, "thaw", String::new(), "", wished).await
}

/// `DELETE /v1/intents/{id}`.
pub(crate) async fn withdraw(call: Call) -> Answer {
    call.know(&[])?;
    let id = call.parameter("id").to_owned();
    let done = call.cluster().withdraw(&id).await.map_err(Problem::from);
    let outcome = match &done {
        Ok(true) => "done",
        Ok(false) => "not in force",
        Err(_) => "failed",
    };
    note(&call, "withdraw", &id, "", outcome).await;
    if !done? {
        let said = format!("no intent {id:?} is in force: GET /v1/intents lists those that are");
        return Err(Problem::new(&NOT_FOUND, said));
    }
    Ok(asked(&call, "withdraw", id.clone(), vec![id], Vec::new(), "/v1/intents"))
}

async fn requested(
    call: &Call,
    act: &'static str,
    lease: String,
    detail: &str,
    requested: Result<Asked, Problem>,
) -> Answer {
    let outcome = match &requested {
        Ok(Asked { leader: Some(leader), .. }) => {
            format!("asked {} in term {}", leader.node, leader.term)
        }
        Ok(_) => "asked".to_owned(),
        Err(_) => "failed".to_owned(),
    };
    note(call, act, &lease, detail, &outcome).await;
    let state = format!("/v1/leases/{}", escaped(&lease));
    Ok(asked(call, act, lease, requested?.intents, Vec::new(), &state))
}

async fn wish(
    call: &Call,
    act: &'static str,
    target: String,
    detail: &str,
    wished: Result<Asked, Problem>,
) -> Answer {
    note(call, act, &target, detail, if wished.is_ok() { "asked" } else { "failed" }).await;
    let Asked { intents, unknown, .. } = wished?;
    Ok(asked(call, act, target, intents, unknown, "/v1/intents"))
}

fn asked(
    call: &Call,
    asked: &'static str,
    target: String,
    intents: Vec<String>,
    unknown: Vec<String>,
    state: &str,
) -> axum::response::Response {
    let mut state = state.to_owned();
    if !Arc::ptr_eq(&call.watched, call.service.watched()) {
        state.push_str(&format!("?cluster={}", escaped(call.cluster().name())));
    }
    let place = HeaderValue::from_str(&state);
    let document = AskedDocument { asked, target, intents, unknown, state };
    let mut response = json(StatusCode::ACCEPTED, &document);
    if let Ok(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

fn escaped(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The term that is meant, if one is named.
fn if_match(call: &Call) -> Result<Option<u64>, Problem> {
    let Some(value) = call.headers.get(header::IF_MATCH) else { return Ok(None) };
    let term = value.to_str().ok().map(|text| text.trim().trim_matches('"'));
    match term.map(str::parse) {
        Some(Ok(term)) => Ok(Some(term)),
        _ if value == "*" => Ok(None),
        _ => Err(Problem::bad("If-Match names a term, such as \"7\"")),
    }
}
