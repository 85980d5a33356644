//! Looking at a cluster.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use incumbent::{Ask, DutyId, LeaseState, StoreHealth};

use crate::call::{Answer, Call, json, json_text};
use crate::cursor::Cursor;
use crate::documents::{
    ClusterDocument, DutyDocument, ExplanationDocument, HistoryDocument, IntentsDocument,
    LeaseDocument, MoveDocument, PlanDocument, millis,
};
use crate::holding::{LONGEST_WAIT, party};
use crate::problem::{NOT_FOUND, Problem};
use crate::span;

/// `GET /v1/cluster`.
pub(crate) async fn cluster(call: Call) -> Answer {
    call.know(&[])?;
    let (service, node) = (&call.service, call.service.node());
    let health = node.health();
    let document = ClusterDocument {
        cluster: call.cluster().name().to_owned(),
        joined: service.cluster().name().to_owned(),
        store: service.cluster().store().capabilities().kind.to_owned(),
        node: node.name().to_owned(),
        member: node.member().map(|member| member.as_str().to_owned()),
        version: env!("CARGO_PKG_VERSION"),
        read_only: service.access().is_read_only(),
        trust_left_ms: millis(health.trust_left),
        last_beat_ms: millis(health.last_beat),
        store_fails: match health.store {
            StoreHealth::Fails { error, .. } => Some(error),
            _ => None,
        },
        clusters: service.clusters().names(),
        holds: service.holds().count(),
    };
    Ok(json(StatusCode::OK, &document))
}

/// `GET /v1/leases`.
pub(crate) async fn leases(call: Call) -> Answer {
    call.know(&[])?;
    let snapshot = call.watched.recent().await?;
    Ok(json_text(StatusCode::OK, snapshot.leases_text()))
}

/// `GET /v1/leases/{lease}`, at once or when it isn't as it was.
pub(crate) async fn lease(call: Call) -> Answer {
    call.know(&["after", "wait"])?;
    let (service, lease) = (&call.service, call.parameter("lease"));
    let wait = match call.query("wait") {
        Some(wait) => span::read("wait", wait, Duration::ZERO, LONGEST_WAIT)?,
        None => Duration::ZERO,
    };
    let state = match call.query("after") {
        None => call.cluster().lease(lease).await?,
        Some(after) => {
            let after = Cursor::read(after)?;
            let _place = service.holds().place(party(call.peer.as_deref()))?;
            match tokio::time::timeout(wait, changed(&call, lease, after)).await {
                Ok(changed) => changed?,
                Err(_) => call.cluster().lease(lease).await?,
            }
        }
    };
    let mut response = json(StatusCode::OK, &LeaseDocument::from(&state));
    if let Ok(term) = HeaderValue::from_str(&format!("\"{}\"", state.term)) {
        response.headers_mut().insert(header::ETAG, term);
    }
    Ok(response)
}

/// Waits until a lease isn't as it was. What this server has seen of it may be older than what the client knows, from
/// another server or by a hold: that is no news, and so the store is asked first (O56).
async fn changed(call: &Call, lease: &str, after: Cursor) -> Result<LeaseState, Problem> {
    let followed = call.service.follow_in(call.cluster(), lease)?;
    let mut older = None;
    loop {
        let is_news = |state: &LeaseState| ![Some(after), older].contains(&Some(Cursor::of(state)));
        let Some(state) = followed.when(is_news).await else { break };
        if Cursor::of(&state) > after {
            return Ok(state);
        }
        let fresh = call.cluster().lease(lease).await?;
        if Cursor::of(&fresh) != after {
            return Ok(fresh);
        }
        older = Some(Cursor::of(&state));
    }
    // This process is shutting down.
    Ok(call.cluster().lease(lease).await?)
}

/// `GET /v1/members`.
pub(crate) async fn members(call: Call) -> Answer {
    call.know(&[])?;
    let snapshot = call.watched.recent().await?;
    Ok(json_text(StatusCode::OK, snapshot.members_text()))
}

/// `GET /v1/duties`.
pub(crate) async fn duties(call: Call) -> Answer {
    call.know(&[])?;
    let snapshot = call.watched.recent().await?;
    Ok(json_text(StatusCode::OK, snapshot.duties_text()))
}

/// `GET /v1/duties/{duty}`.
pub(crate) async fn duty(call: Call) -> Answer {
    call.know(&[])?;
    let duty = call.parameter("duty");
    let standing = call.cluster().duty(duty).await?.ok_or_else(|| unknown(duty))?;
    Ok(json(StatusCode::OK, &DutyDocument::from(&standing)))
}

/// `GET /v1/duties/{duty}/explain`.
pub(crate) async fn explain(call: Call) -> Answer {
    call.know(&[])?;
    let duty = call.parameter("duty");
    let explained = call.cluster().explain(duty).await?.ok_or_else(|| unknown(duty))?;
    let document = ExplanationDocument {
        duty: DutyDocument::from(&explained.duty),
        explanation: explained.lines,
    };
    Ok(json(StatusCode::OK, &document))
}

fn unknown(duty: &str) -> Problem {
    let said =
        format!("nobody knows the duty {duty:?}: GET /v1/duties lists those that live nodes know");
    Problem::new(&NOT_FOUND, said)
}

/// `GET /v1/plan`: as things are, or as they would be.
pub(crate) async fn plan(call: Call) -> Answer {
    const NAMES: &[&str] =
        &["drain", "undrain", "cordon", "uncordon", "move", "pin", "pause", "resume", "to"];
    call.know(NAMES)?;
    let mut acts = call.query.iter().map(|(name, _)| name.as_str()).filter(|name| *name != "to");
    if let (Some(first), Some(second)) = (acts.next(), acts.next()) {
        let both = if first == second {
            format!("{first} twice")
        } else {
            format!("both {first} and {second}")
        };
        let said = format!("the query has {both}: ask for one at a time");
        return Err(Problem::bad(said));
    }
    let node = |name: &str| -> Result<String, Problem> {
        incumbent::check_name("node", name)?;
        Ok(name.to_owned())
    };
    let to = || {
        let missing = || Problem::bad("say to which node, by to=NODE");
        node(call.query("to").ok_or_else(missing)?)
    };
    let duty =
        |name: &str| -> Result<String, Problem> { Ok(DutyId::parse(name)?.as_str().to_owned()) };
    let (mut wishes, mut without) = (Vec::new(), Vec::new());
    for (name, value) in &call.query {
        match name.as_str() {
            "drain" => wishes.push(Ask::Drain { node: node(value)? }),
            "cordon" => wishes.push(Ask::Cordon { node: node(value)? }),
            "move" => wishes.push(Ask::Move { duty: duty(value)?, node: to()? }),
            "pin" => {
                wishes.push(Ask::Pin { duty: duty(value)?, node: to()?, required: false });
            }
            "pause" => wishes.push(Ask::Pause { duty: duty(value)? }),
            "undrain" => without.push(Ask::Drain { node: node(value)? }),
            "uncordon" => without.push(Ask::Cordon { node: node(value)? }),
            "resume" => without.push(Ask::Pause { duty: duty(value)? }),
            _ => {}
        }
    }
    let preview = call.cluster().plan_if(wishes, |wish| without.contains(wish)).await?;
    Ok(json(StatusCode::OK, &PlanDocument::from(preview)))
}

/// `GET /v1/history`.
pub(crate) async fn history(call: Call) -> Answer {
    call.know(&["lease", "duty"])?;
    for (what, name) in ["lease", "duty"].map(|what| (what, call.query(what))) {
        name.map_or(Ok(()), |name| incumbent::check_name(what, name))?;
    }
    let snapshot = call.watched.recent().await?;
    let (lease, duty) = (call.query("lease"), call.query("duty"));
    let leases = snapshot.leases.iter().filter(|state| match (lease, duty) {
        (Some(lease), _) => state.lease == lease,
        (None, duty) => duty.is_none(),
    });
    let moves = snapshot.work.moves.iter().filter(|moved| match (duty, lease) {
        (Some(duty), _) => moved.duty.as_str() == duty || moved.duty.family() == duty,
        (None, lease) => lease.is_none(),
    });
    let document = HistoryDocument {
        leases: leases.map(LeaseDocument::from).collect(),
        moves: moves.map(MoveDocument::from).collect(),
        as_of_ms: snapshot.at_ms,
    };
    Ok(json(StatusCode::OK, &document))
}

/// `GET /v1/intents`.
pub(crate) async fn intents(call: Call) -> Answer {
    call.know(&[])?;
    let snapshot = call.watched.recent().await?;
    Ok(json(StatusCode::OK, &IntentsDocument { intents: snapshot.intent_documents() }))
}
