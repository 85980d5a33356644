//! Who asked for what: kept in the store, with a bound.

use axum::http::StatusCode;
use incumbent::{Act, clock};

use crate::call::{Answer, Call, json};
use crate::documents::{ActDocument, AuditDocument};

/// How many acts the store keeps.
const BOUND: usize = 256;

/// A detail or a name is cut past this.
const LONGEST: usize = 256;

/// Writes down what was asked, and what became of it. That it can't be written down is logged, and
/// no reason to refuse what was already done.
pub(crate) async fn note(call: &Call, act: &str, target: &str, detail: &str, outcome: &str) {
    let cut = |text: &str| text.chars().take(LONGEST).collect::<String>();
    let mut noted = Act::default();
    noted.at_ms = clock::wall_ms();
    noted.who = cut(&call.who.name);
    noted.from = cut(&call.who.from);
    noted.act = cut(act);
    noted.target = cut(target);
    noted.detail = cut(detail);
    noted.outcome = cut(outcome);
    tracing::info!(
        action = "audit",
        who = noted.who,
        from = noted.from,
        act,
        target,
        detail,
        outcome,
        "asked over HTTP"
    );
    if let Err(error) = call.cluster().note(noted).await {
        tracing::warn!(action = "audit", %error, act, target, "can't be written down");
    }
}

/// `GET /v1/audit`.
pub(crate) async fn audit(call: Call) -> Answer {
    call.know(&[])?;
    let acts = call.cluster().audit().await?;
    let acts = acts.into_iter().rev().map(|act| ActDocument {
        at_ms: act.at_ms,
        who: act.who,
        from: act.from,
        act: act.act,
        target: act.target,
        detail: act.detail,
        outcome: act.outcome,
    });
    Ok(json(StatusCode::OK, &AuditDocument { acts: acts.collect(), bound: BOUND }))
}
