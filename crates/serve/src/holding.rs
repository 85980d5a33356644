//! Holding leases over HTTP: `hold`, `acquire`, and what is asked of a hold.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use incumbent::{Attempt, Candidacy, ClusterLead, LeaseName, Node, clock};
use tokio::sync::{mpsc, oneshot};

use crate::call::{Answer, Call, check_texts, json};
use crate::documents::{
    HoldDocument, HoldRequest, OnClose, TrustDocument, TrustRequest, Wait, millis,
};
use crate::hold::{Hold, Order, Stage, Start, Stream, Unclaimed, draw};
use crate::holds::{Holds, Place};
use crate::keeper::{Keeper, LINES};
use crate::kept::Won;
use crate::lines::{Format, Lines};
use crate::peer::{Party, Peer};
use crate::problem::{HELD, Problem, STORE, TIMEOUT};
use crate::service::Service;
use crate::span;

/// How long work may take to end, unless it is said; and at most.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
pub(crate) const LONGEST_GRACE: Duration = Duration::from_secs(300);

/// The longest wait without a stream.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a store has to take a new member in.
pub(crate) const JOIN: Duration = Duration::from_secs(10);

/// How long a `DELETE` is kept waiting for the store.
const CONFIRM: Duration = Duration::from_secs(5);

/// What a nonce has at most.
const NONCE: usize = 64;

/// `POST /v1/leases/{lease}/hold`.
pub(crate) async fn hold(call: Call) -> Answer {
    call.know(&[])?;
    let asked = Asked::read(&call)?;
    let place = call.service.holds().place(party(call.peer.as_deref()))?;
    let format = Format::of(&call.headers);
    let (sender, receiver) = mpsc::channel(LINES);
    let (peer, on_close) = (call.peer.clone(), asked.on_close);
    let joined = asked.join(&call.service).await?;
    let won = if asked.wait.is_zero() { Some(joined.attempt(&asked).await?) } else { None };
    let followed = call.service.follow(&asked.lease)?;
    let lines = Some((format, sender));
    let Joined { node, start } = joined;
    let keeper = Keeper::new(&call.service, start, node, followed, lines, peer, on_close);
    let hold = start_keeping(&call.service, keeper, place, &asked, won);
    Ok(Lines::response(format, receiver, Stream::of(&hold)))
}

/// `POST /v1/leases/{lease}/acquire`.
pub(crate) async fn acquire(call: Call) -> Answer {
    call.know(&[])?;
    let asked = Asked::read(&call)?;
    let place = call.service.holds().place(party(call.peer.as_deref()))?;
    let joined = asked.join(&call.service).await?;
    let won = if asked.wait.is_zero() { Some(joined.attempt(&asked).await?) } else { None };
    let followed = call.service.follow(&asked.lease)?;
    let Joined { node, start } = joined;
    // The connection of one request says nothing about the life of the client.
    let keeper = Keeper::new(&call.service, start, node, followed, None, None, OnClose::Wait);
    let hold = start_keeping(&call.service, keeper, place, &asked, won);
    // Should the client be gone before it is answered.
    let unclaimed = Unclaimed::of(&hold);
    // Who has won waits for the keeper alone, however long it takes to be scheduled.
    claim(&hold, (!asked.wait.is_zero()).then_some(asked.wait)).await?;
    unclaimed.claim();
    let mut response = json(StatusCode::CREATED, &document(&hold));
    let place = format!("/v1/holds/{}", hold.name);
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// Waits until it is held, so long at most if it may come to nothing.
async fn claim(hold: &Hold, wait: Option<Duration>) -> Result<(), Problem> {
    let until = wait.map(|wait| (wait, clock::now() + wait));
    let mut stages = hold.stages();
    loop {
        let stage = *stages.borrow_and_update();
        match stage {
            Stage::Held | Stage::Stopping => return Ok(()),
            Stage::Over(why) => return Err(Holds::gone(&hold.lease, None, why)),
            Stage::Waiting | Stage::Serving => {}
        }
        hold.hear();
        let left = until.map_or(hold.renew(), |(_, until)| until.since(clock::now()));
        let _ = tokio::time::timeout(left.min(hold.renew()), stages.changed()).await;
        let over = until.filter(|(_, until)| clock::now() >= *until);
        if let Some((wait, _)) = over.filter(|_| hold.stage() == Stage::Waiting) {
            let said =
                format!("{:?} wasn't free within {wait:?}. Nothing is held: ask again", hold.lease);
            return Err(Problem::new(&TIMEOUT, said).with("lease", hold.lease.as_str()));
        }
    }
}

/// `PUT /v1/holds/{id}` and `POST /v1/holds/{id}/trust`.
pub(crate) async fn trust(call: Call) -> Answer {
    call.know(&[])?;
    let nonce = call.body::<TrustRequest>()?.nonce.unwrap_or_default();
    if nonce.len() > NONCE {
        return Err(Problem::bad(format!("the nonce is longer than {NONCE} bytes")));
    }
    let hold = call.service.holds().find(call.parameter("id"))?;
    let term = hold.term().map(|(term, _)| term.number());
    let state = state(&hold)?;
    hold.hear();
    // Told from here on, whether or not the answer arrives.
    let until = hold.tell();
    let trusted_for_ms = match (until, hold.stage()) {
        (_, Stage::Over(why)) => return Err(Holds::gone(&hold.lease, term, why)),
        (Some(until), _) => millis(until.since(clock::now())),
        (None, _) => 0,
    };
    let (name, lease) = (hold.name.clone(), hold.lease.clone());
    let document = TrustDocument { nonce, hold: name, lease, term, state, trusted_for_ms };
    Ok(json(StatusCode::OK, &document))
}

/// `GET /v1/holds/{id}`.
pub(crate) async fn show(call: Call) -> Answer {
    call.know(&[])?;
    let hold = call.service.holds().find(call.parameter("id"))?;
    state(&hold)?;
    Ok(json(StatusCode::OK, &document(&hold)))
}

/// `DELETE /v1/holds/{id}`.
pub(crate) async fn end(call: Call) -> Answer {
    call.know(&[])?;
    let (holds, id) = (call.service.holds(), call.parameter("id"));
    let hold = match holds.find(id) {
        Ok(hold) => hold,
        Err(_) if holds.is_past(id) => return Ok(status(StatusCode::NO_CONTENT)),
        Err(unknown) => return Err(unknown),
    };
    let (answer, freed) = oneshot::channel();
    hold.order(Order::Delete(answer));
    match tokio::time::timeout(CONFIRM, freed).await {
        Ok(_) => Ok(status(StatusCode::NO_CONTENT)),
        Err(_) => Ok(status(StatusCode::ACCEPTED)),
    }
}

pub(crate) fn status(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

fn start_keeping(
    service: &Service,
    keeper: Keeper,
    place: Place,
    asked: &Asked,
    won: Option<Won>,
) -> Arc<Hold> {
    let keeper = keeper.seated(place);
    let hold = Arc::clone(&keeper.hold);
    service.spawn(keeper.run(asked.candidacy(), won));
    hold
}

fn document(hold: &Hold) -> HoldDocument {
    HoldDocument {
        hold: hold.name.clone(),
        lease: hold.lease.clone(),
        term: hold.term().map(|(term, _)| term.number()),
        member: hold.term().map(|(term, _)| term.member().as_str().to_owned()),
        trust_file: hold.ledger.file(),
        ttl_ms: millis(hold.ttl),
        grace_ms: millis(hold.grace),
        renew_ms: millis(hold.renew()),
        state: state(hold).unwrap_or("over"),
    }
}

fn state(hold: &Hold) -> Result<&'static str, Problem> {
    match hold.stage() {
        Stage::Waiting => Ok("waiting"),
        Stage::Serving => Ok("serving"),
        Stage::Held => Ok("held"),
        Stage::Stopping => Ok("stopping"),
        Stage::Over(why) => {
            Err(Holds::gone(&hold.lease, hold.term().map(|(term, _)| term.number()), why))
        }
    }
}

pub(crate) fn party(peer: Option<&Peer>) -> Party {
    peer.map_or(Party::Unknown, Peer::party)
}

/// How long work may report no progress.
pub(crate) fn watchdog(text: Option<&str>) -> Result<Option<Duration>, Problem> {
    let (least, most) = (Duration::from_millis(100), Duration::from_secs(24 * 3600));
    text.map(|text| span::read("watchdog", text, least, most)).transpose()
}

/// What a client asks for, checked.
struct Asked {
    lease: String,
    request: HoldRequest,
    ttl: Duration,
    grace: Duration,
    /// Zero: one attempt.
    wait: Duration,
    on_close: OnClose,
    watchdog: Option<Duration>,
}

/// A member for a client.
struct Joined {
    node: Node,
    start: Start,
}

impl Asked {
    fn read(call: &Call) -> Result<Self, Problem> {
        let lease = LeaseName::new(call.parameter("lease"))?.as_str().to_owned();
        let request: HoldRequest = call.body()?;
        let texts =
            [("address", request.address.as_deref()), ("payload", request.payload.as_deref())];
        check_texts(request.labels.as_ref(), &texts)?;
        let (service, second) = (&call.service, Duration::from_secs(1));
        let ttl = match &request.ttl {
            Some(ttl) => span::read("ttl", ttl, service.least_ttl(), second * 3600)?,
            None => service.ttl(),
        };
        let grace = match &request.grace {
            Some(grace) => span::read("grace", grace, Duration::ZERO, LONGEST_GRACE)?,
            None => GRACE,
        };
        let wait = match &request.wait {
            None | Some(Wait::Whether(true)) => LONGEST_WAIT,
            Some(Wait::Whether(false)) => Duration::ZERO,
            Some(Wait::Long(wait)) => span::read("wait", wait, second / 1000, LONGEST_WAIT)?,
        };
        let on_close = request.on_close.unwrap_or_default();
        let watchdog = watchdog(request.watchdog.as_deref())?;
        Ok(Self { lease, request, ttl, grace, wait, on_close, watchdog })
    }

    /// Makes a member for the client, and for nobody else.
    async fn join(&self, service: &Service) -> Result<Joined, Problem> {
        let id = draw().ok_or_else(|| Problem::new(&STORE, "the system gives no randomness"))?;
        let cluster = service.cluster();
        let mut builder = Node::builder()
            .cluster(cluster.name())
            .name(&self.request.name)
            .ttl(self.ttl)
            .without_membership()
            .cluster_lead(ClusterLead::Never)
            .hints(cluster.hints().clone())
            .join_timeout(JOIN)
            .on_behalf();
        if service.least_ttl() < Duration::from_secs(3) {
            builder = builder.allow_short_ttl();
        }
        if let Some(address) = &self.request.address {
            builder = builder.address(address);
        }
        for (name, value) in self.request.labels.iter().flatten() {
            builder = builder.label(name, value);
        }
        let node = builder.join(cluster.store()).await?;
        let start = Start {
            id,
            lease: self.lease.clone(),
            candidate: self.request.name.clone(),
            address: self.request.address.clone(),
            ttl: self.ttl,
            grace: self.grace,
            watchdog: self.watchdog,
            family: false,
            above: None,
        };
        Ok(Joined { node, start })
    }

    fn candidacy(&self) -> Candidacy {
        let mut candidacy = Candidacy::new(&self.lease);
        if let Some(payload) = &self.request.payload {
            candidacy = candidacy.payload(payload);
        }
        if let Some(priority) = self.request.priority {
            candidacy = candidacy.priority(priority);
        }
        candidacy
    }
}

impl Joined {
    /// One attempt.
    async fn attempt(&self, asked: &Asked) -> Result<Won, Problem> {
        let lease = asked.lease.as_str();
        let busy = |said: String| Problem::new(&HELD, said).with("lease", lease);
        match self.node.try_lead(asked.candidacy()).await? {
            Attempt::Elected(leadership) => Ok(Won { leadership, campaign: None }),
            Attempt::OtherLeader(other) => {
                let (node, term) = (&other.node, other.term);
                let said = format!(
                    "{node} holds {lease:?} in term {term}. Nothing was changed: wait for it, or \
                     ask again later"
                );
                let holder = serde_json::json!({ "node": node, "address": other.address });
                Err(busy(said).with("term", term).with("holder", holder))
            }
            Attempt::Unavailable { why } => Err(Problem::new(&STORE, why).in_doubt()),
            _ => Err(busy(format!("{lease:?} is changing hands: ask again a little later"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::Why;

    fn waiting() -> Arc<Hold> {
        let (lease, candidate) = ("x".to_owned(), "a".to_owned());
        let (address, watchdog, above) = (None, None, None);
        let (ttl, grace, family) = (Duration::from_secs(3), GRACE, false);
        let id = draw().unwrap();
        Hold::new(Start { id, lease, candidate, address, ttl, grace, watchdog, family, above }).0
    }

    #[tokio::test]
    async fn what_was_won_is_waited_for_however_late_its_keeper_is() {
        let hold = waiting();
        let late = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            hold.enter(Stage::Held);
        };
        let (claimed, ()) = tokio::join!(claim(&hold, None), late);
        assert!(claimed.is_ok());
        hold.enter(Stage::Over(Why::Closed));
        assert_eq!(claim(&hold, None).await.unwrap_err().code(), "lost");
    }

    #[tokio::test]
    async fn what_may_come_to_nothing_is_waited_for_as_long_as_was_said() {
        let waited = claim(&waiting(), Some(Duration::from_millis(20))).await;
        assert_eq!(waited.unwrap_err().code(), "timeout");
    }
}
