//! Roles and probes: answered from memory, without the store.

use axum::http::StatusCode;
use incumbent::{LeaseName, StoreHealth};

use crate::call::{Answer, Call, json};
use crate::documents::{ChecksDocument, HealthDocument, NameDocument, RoleDocument, millis};
use crate::problem::Problem;
use crate::service::Service;

/// `GET|HEAD|OPTIONS /leader/{lease}`.
pub(crate) async fn leader(call: Call) -> Answer {
    call.know(&["standby"])?;
    let standby = match call.query("standby") {
        None => false,
        Some("200") => true,
        Some(_) => return Err(Problem::bad("standby can be 200, or be left out")),
    };
    let role = role(&call.service, call.parameter("lease"))?;
    let status = match role.here || standby {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    Ok(json(status, &role))
}

/// Whether the lease is held here, at this very moment; or else who holds it, as far as is known.
fn role(service: &Service, lease: &str) -> Result<RoleDocument, Problem> {
    if let Some(own) = held_here(service, lease) {
        return Ok(own);
    }
    if lease != "incumbent/leader" {
        LeaseName::new(lease)?;
    }
    let known = service.follow(lease)?.known();
    let leader = known.as_ref().and_then(|(state, _)| state.leader.as_ref());
    Ok(RoleDocument {
        lease: lease.to_owned(),
        here: false,
        term: known.as_ref().map(|(state, _)| state.term),
        node: leader.map(|it| it.node.clone()),
        member: leader.map(|it| it.member.as_str().to_owned()),
        address: leader.and_then(|it| it.address.clone()),
        since_ms: leader.and_then(|it| it.since_ms),
        trusted_for_ms: 0,
        known_ms_ago: known.as_ref().map(|(_, age)| millis(*age)),
    })
}

fn held_here(service: &Service, lease: &str) -> Option<RoleDocument> {
    let (node, address, term, since_ms) = if let Some(hold) = service.holds().holder(lease) {
        let (term, since_ms) = hold.term()?.clone();
        (hold.candidate.clone(), hold.address.clone(), term, Some(since_ms))
    } else {
        let term = service.node().term(lease)?;
        (service.node().name().to_owned(), None, term, None)
    };
    // Asked last: a yes was true at the moment of the answer.
    let trusted_for_ms = millis(term.trust_left());
    term.is_held().then(|| RoleDocument {
        lease: lease.to_owned(),
        here: true,
        term: Some(term.number()),
        node: Some(node),
        member: Some(term.member().as_str().to_owned()),
        address,
        since_ms,
        trusted_for_ms,
        known_ms_ago: Some(0),
    })
}

/// `GET /livez`: this process works. A store that is away doesn't count.
pub(crate) async fn livez(call: Call) -> Answer {
    call.know(&[])?;
    let checks = checks(&call.service);
    let turned = checks.driver_turned_ms_ago <= millis(call.service.node().timing().ttl);
    let (status, said) = match turned {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the thread that sends beats hangs"),
    };
    Ok(json(status, &HealthDocument { status: said, checks }))
}

/// `GET /readyz`: it takes requests. Who leads doesn't count.
pub(crate) async fn readyz(call: Call) -> Answer {
    call.know(&[])?;
    let checks = checks(&call.service);
    let (status, said) = match call.service.holds().is_stopping() {
        false => (StatusCode::OK, "ok"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "shutting down"),
    };
    Ok(json(status, &HealthDocument { status: said, checks }))
}

fn checks(service: &Service) -> ChecksDocument {
    let health = service.node().health();
    ChecksDocument {
        driver_turned_ms_ago: millis(health.last_turn),
        // Why is for those who may look: /v1/cluster says it. Anybody may ask here.
        store: match health.store {
            StoreHealth::Fails { .. } => "fails".to_owned(),
            _ => "answers".to_owned(),
        },
    }
}

/// `GET /`: the name of the leader, as the sidecars of Kubernetes gave it.
pub(crate) async fn name(call: Call) -> Answer {
    call.know(&["lease"])?;
    let lease = call.query("lease").unwrap_or(call.service.lease());
    let role = role(&call.service, lease)?;
    let name = match role.known_ms_ago {
        Some(_) => role.node,
        // The first question about a lease: an empty name would say that nobody holds it (O58).
        None => call.service.cluster().lease(lease).await?.leader.map(|leader| leader.node),
    };
    Ok(json(StatusCode::OK, &NameDocument { name: name.unwrap_or_default() }))
}
