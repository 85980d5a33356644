//! Keeps a hold: waits for the lease, tells of trust, and frees the lease when told trust is over.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use incumbent::{Loss, Moment, Node, Term, clock};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::documents::{OnClose, millis};
use crate::follow::Followed;
use crate::hold::{Hold, LONGEST, Order, Stage, Start, Why};
use crate::holds::Place;
use crate::kept::{Kept, Won};
use crate::lines::Format;
use crate::peer::Peer;
use crate::service::Service;

/// So many lines wait for a client at most; who reads none of them is cut off.
pub(crate) const LINES: usize = 64;

/// How long the reason of an end is waited for.
const REASON: Duration = Duration::from_secs(1);

/// How long a store has to confirm that a lease was freed before that is left open.
const CONFIRM: Duration = Duration::from_secs(5);

/// Keeps one hold.
pub(crate) struct Keeper {
    pub(crate) hold: Arc<Hold>,
    service: Service,
    node: Node,
    orders: mpsc::UnboundedReceiver<Order>,
    lines: Option<(Format, mpsc::Sender<Bytes>)>,
    peer: Option<Arc<Peer>>,
    on_close: OnClose,
    /// The lease, for as long as it is waited for.
    followed: Option<Arc<Followed>>,
    /// Who asked for the end, and waits for it.
    answers: Vec<oneshot::Sender<()>>,
    place: Option<Place>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // By a panic, or with its runtime: nobody shall wait for it.
        if !matches!(self.hold.stage(), Stage::Over(_)) {
            self.hold.enter(Stage::Over(Why::Lost(Loss::Broken)));
        }
        if self.place.is_some() {
            self.service.holds().remove(&self.hold);
        }
    }
}

/// How a hold is to end.
enum End {
    /// Nothing of the client runs any more.
    Now(Why),
    /// Once told trust is over.
    Later(Why),
}

impl Keeper {
    pub(crate) fn new(
        service: &Service,
        start: Start,
        node: Node,
        followed: Arc<Followed>,
        lines: Option<(Format, mpsc::Sender<Bytes>)>,
        peer: Option<Arc<Peer>>,
        on_close: OnClose,
    ) -> Self {
        let (hold, orders) = Hold::new(start);
        let (service, answers) = (service.clone(), Vec::new());
        let followed = Some(followed);
        Self { hold, service, node, orders, lines, peer, on_close, followed, answers, place: None }
    }

    /// Waits, holds, and ends in order.
    pub(crate) async fn run(mut self, candidacy: incumbent::Candidacy, won: Option<Won>) {
        let won = match won {
            Some(won) => Ok(won),
            None => self.wait(candidacy).await,
        };
        let why = match won {
            Ok(won) => self.keep(Kept::new(won, &self.hold)).await,
            Err(why) => {
                self.over(why);
                why
            }
        };
        tracing::debug!(hold = %self.hold.name.get(..8).unwrap_or_default(), lease = self.hold.lease, why = why.as_str(), action = "hold", "over");
        for answer in self.answers.drain(..) {
            let _ = answer.send(());
        }
        // In the background, as far as anybody waits: the lease is free, or runs out.
        let _ = self.node.leave().await;
    }

    /// Its place among the others, which it gives back at its end.
    pub(crate) fn seated(mut self, place: Place) -> Self {
        self.service.holds().add(&self.hold);
        self.place = Some(place);
        self
    }

    /// Until it is elected, or shall wait no longer.
    async fn wait(&mut self, candidacy: incumbent::Candidacy) -> Result<Won, Why> {
        let peer = self.peer.clone();
        let mut proof = std::pin::pin!(proof(peer.as_deref(), self.on_close));
        // Who has just given the lease up stands back, also if it comes as somebody new (F30).
        let rests_until = self.service.holds().rests(&self.hold.lease, &self.hold.candidate);
        let mut campaign = None;
        let mut behind = self.behind();
        self.say("waiting", self.settings(&behind));
        loop {
            if campaign.is_none() && clock::now() >= rests_until {
                campaign = self.node.campaign(candidacy.clone()).ok();
                if campaign.is_none() {
                    return Err(Why::Lost(Loss::Leaving));
                }
            }
            let pause = match &campaign {
                Some(_) => self.hold.renew(),
                None => rests_until.since(clock::now()).min(LONGEST),
            };
            let followed = self.followed.clone();
            let elected = async {
                match &mut campaign {
                    Some(campaign) => campaign.elected().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Delete(answer)) => {
                        self.answers.push(answer);
                        return Err(Why::Deleted);
                    }
                    Some(Order::Closed | Order::Unclaimed) | None => return Err(Why::Closed),
                    Some(Order::Shutdown) => return Err(Why::Shutdown),
                    Some(Order::Report(_)) => {}
                },
                () = &mut proof => return Err(Why::Ended),
                won = elected => {
                    let leadership = won.map_err(|_| Why::Lost(Loss::Leaving))?;
                    return Ok(Won { leadership, campaign });
                }
                () = changed(followed.as_deref(), &behind) => {
                    behind = self.behind();
                    self.say("waiting", self.settings(&behind));
                }
                () = tokio::time::sleep(pause) => {
                    if self.is_unheard() {
                        return Err(Why::Unheard);
                    }
                    if campaign.is_some() {
                        self.say("waiting", self.settings(&behind));
                    }
                }
            }
        }
    }

    /// From the election until nothing of the client can run any more.
    async fn keep(&mut self, kept: Kept<Won>) -> Why {
        let Some(term) = kept.term() else { return Why::Ended };
        self.begin(&term);
        let end = self.renew(&term).await;
        self.service.holds().release(&self.hold);
        let why = match end {
            End::Now(why) | End::Later(why) => why,
        };
        // From here on nothing more is told.
        self.over(why);
        if let End::Later(_) = end {
            self.outwait().await;
        }
        if matches!(why, Why::Resigned | Why::Stuck) {
            self.service.holds().rest(&self.hold);
        }
        let _ = tokio::time::timeout(CONFIRM, kept.release()).await;
        why
    }

    /// It is elected: from now on trust is told.
    fn begin(&mut self, term: &Term) {
        // Nobody is waited for any more, and whoever is followed costs the store reads.
        if let Some(followed) = self.followed.take() {
            self.service.follows().release(followed);
        }
        let file = self.service.trust_files().create(&self.hold.id, &self.hold.name, term.number());
        if let Some(file) = file {
            self.hold.ledger.keep(file);
        }
        self.hold.begin(term);
        self.hold.progressed();
        self.service.holds().held(&self.hold);
        // The client was waiting for this, and has now its time to be heard of.
        if self.lines.is_none() {
            self.hold.hear();
        }
        self.hold.tell();
        let mut line = json!({ "term": term.number(), "member": term.member().as_str() });
        if let (Some(file), Some(fields)) = (self.hold.ledger.file(), line.as_object_mut()) {
            fields.insert("trust_file".to_owned(), file.into());
        }
        self.say("elected", line);
    }

    /// Tells of each beat that gets through, until the hold ends.
    async fn renew(&mut self, term: &Term) -> End {
        let peer = self.peer.clone();
        let mut proof = std::pin::pin!(proof(peer.as_deref(), self.on_close));
        let mut until = term.trusted_until();
        let mut stopping: Option<(Why, Moment)> = None;
        loop {
            let patience = match self.hold.patience(stopping) {
                Ok(patience) => patience,
                Err(why) => return End::Later(why),
            };
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Delete(answer)) => {
                        self.answers.push(answer);
                        return End::Now(Why::Deleted);
                    }
                    Some(Order::Closed) | None => return End::Later(Why::Closed),
                    Some(Order::Unclaimed) => return End::Now(Why::Closed),
                    Some(Order::Shutdown) => {
                        if stopping.is_none() {
                            stopping = Some(self.stop(term, Why::Shutdown));
                        }
                    }
                    Some(Order::Report(_)) => {}
                },
                () = &mut proof => return End::Now(Why::Ended),
                lost = term.lost(), if stopping.is_none_or(|(why, _)| why == Why::Shutdown) => {
                    if lost.abrupt {
                        return End::Later(Why::Lost(lost.why));
                    }
                    let (why, end) = self.stop(term, Why::Resigned);
                    stopping = Some((why, stopping.map_or(end, |(_, sooner)| sooner.min(end))));
                }
                next = term.trust_changed(until) => {
                    until = next;
                    if until == Moment::START {
                        return End::Later(Why::Lost(reason(term).await));
                    }
                    if self.is_unheard() {
                        return End::Later(Why::Unheard);
                    }
                    self.hold.tell();
                    self.say("renewed", json!({ "term": term.number() }));
                }
                () = tokio::time::sleep(patience) => {
                    if self.is_unheard() {
                        return End::Later(Why::Unheard);
                    }
                }
            }
        }
    }

    /// The work shall end within the grace.
    fn stop(&mut self, term: &Term, why: Why) -> (Why, Moment) {
        self.hold.enter(Stage::Stopping);
        self.service.holds().release(&self.hold);
        self.say("stopping", json!({ "term": term.number(), "why": why.as_str() }));
        (why, clock::now() + self.hold.grace)
    }

    /// Tells nothing more, and the client that it is over.
    fn over(&mut self, why: Why) {
        self.hold.ledger.close();
        let term = self.hold.term().map(|(term, _)| term.number());
        let line = match term {
            Some(term) => json!({ "term": term, "why": why.as_str() }),
            None => json!({ "why": why.as_str() }),
        };
        if matches!(why, Why::Unheard | Why::Stuck) && term.is_some() {
            self.say("stopping", line.clone());
        }
        self.say("lost", line);
        self.lines = None;
        self.hold.enter(Stage::Over(why));
        self.service.holds().ended(&self.hold, why);
    }

    /// Until told trust is over; or the client says, or it is proven, that nothing of it runs.
    async fn outwait(&mut self) {
        let peer = self.peer.clone();
        let mut proof = std::pin::pin!(proof(peer.as_deref(), self.on_close));
        loop {
            let (now, told) = (clock::now(), self.hold.ledger.told());
            let Some(told) = told.filter(|told| now < *told) else { return };
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Delete(answer)) => {
                        self.answers.push(answer);
                        return;
                    }
                    Some(Order::Unclaimed) => return,
                    Some(Order::Closed | Order::Shutdown | Order::Report(_)) => {}
                    // Nobody can send any more, which says nothing about the client.
                    None => tokio::time::sleep(told.since(now).min(LONGEST)).await,
                },
                () = &mut proof => return,
                () = tokio::time::sleep(told.since(now).min(LONGEST)) => {}
            }
        }
    }

    /// Whether the client wasn't heard of for a ttl. It was when it has read all lines, as of the
    /// last of them: it may have stopped right after that.
    fn is_unheard(&self) -> bool {
        if self.lines.is_some() && self.peer.as_ref().is_some_and(|peer| peer.has_read_all()) {
            self.hold.hear_reading();
        }
        self.hold.unheard_for() > self.hold.ttl
    }

    /// Sends a line; who doesn't read is cut off.
    fn say(&mut self, event: &str, mut line: Value) {
        let Some((format, sender)) = &self.lines else { return };
        if let Some(fields) = line.as_object_mut() {
            fields.insert("event".to_owned(), event.into());
            fields.insert("hold".to_owned(), self.hold.name.clone().into());
            fields.insert("lease".to_owned(), self.hold.lease.clone().into());
        }
        if sender.try_send(format.line(event, &line)).is_err() {
            // The stream ends with what is on its way.
            self.lines = None;
            self.hold.order(Order::Closed);
        }
    }

    fn settings(&self, behind: &Behind) -> Value {
        let hold = &self.hold;
        let mut line = json!({
            "ttl_ms": millis(hold.ttl),
            "grace_ms": millis(hold.grace),
            "renew_ms": millis(hold.renew()),
        });
        if let (Some((node, term)), Some(fields)) = (behind, line.as_object_mut()) {
            fields.insert("behind".to_owned(), json!({ "node": node, "term": term }));
        }
        line
    }

    fn behind(&self) -> Behind {
        let known = self.followed.as_ref().and_then(|followed| followed.known());
        known.and_then(|(state, _)| behind_of(&state))
    }
}

/// Ready once somebody else is waited for.
async fn changed(followed: Option<&Followed>, behind: &Behind) {
    match followed {
        Some(followed) => drop(followed.when(|state| behind_of(state) != *behind).await),
        None => std::future::pending().await,
    }
}

/// Who is waited for.
type Behind = Option<(String, u64)>;

fn behind_of(state: &incumbent::LeaseState) -> Behind {
    state.leader.as_ref().map(|leader| (leader.node.clone(), leader.term))
}

/// Why trust is over. That it is, is known a moment before why.
pub(crate) async fn reason(term: &Term) -> Loss {
    let told = tokio::time::timeout(REASON, term.lost()).await;
    told.map_or(Loss::CannotTell, |lost| lost.why)
}

/// Ready once it is proven that nothing of the client runs any more.
pub(crate) async fn proof(peer: Option<&Peer>, on_close: OnClose) {
    match (peer, on_close) {
        // What a client has sent ahead may hide that it has closed, and not that it is dead.
        (Some(peer), OnClose::Ended) => tokio::select! {
            () = peer.closed() => {}
            () = peer.dead() => {}
        },
        (Some(peer), OnClose::Wait) => peer.dead().await,
        (None, _) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use incumbent::{Attempt, Candidacy, ClusterLead, MemoryStore};

    use super::*;
    use crate::hold::{Unclaimed, draw};
    use crate::service::Options;

    #[tokio::test]
    async fn what_nobody_was_told_of_is_freed_at_once() {
        let (store, ttl) = (MemoryStore::new(), Duration::from_secs(600));
        let member =
            |name: &str| Node::builder().name(name).ttl(ttl).cluster_lead(ClusterLead::Never);
        let server = member("server").join(store.clone()).await.unwrap();
        let service = Service::new(server, Options::default()).unwrap();
        let node = member("a").on_behalf().join(store.clone()).await.unwrap();
        let Attempt::Elected(leadership) = node.try_lead(Candidacy::new("x")).await.unwrap() else {
            panic!("it is free")
        };
        let start = Start {
            id: draw().unwrap(),
            lease: "x".to_owned(),
            candidate: "a".to_owned(),
            address: None,
            ttl,
            grace: Duration::ZERO,
            watchdog: None,
            family: false,
            above: None,
        };
        let followed = service.follow("x").unwrap();
        let keeper = Keeper::new(&service, start, node, followed, None, None, OnClose::Wait);
        let hold = Arc::clone(&keeper.hold);
        // The request is gone before the keeper has even run.
        drop(Unclaimed::of(&hold));
        let won = Some(Won { leadership, campaign: None });
        let run = keeper.run(Candidacy::new("x"), won);
        tokio::time::timeout(Duration::from_secs(60), run)
            .await
            .expect("long before told trust ends");
        assert_eq!(hold.stage(), Stage::Over(Why::Closed));
        assert!(service.cluster().lease("x").await.unwrap().leader.is_none());
    }
}
