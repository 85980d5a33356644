//! One duty that runs at a client, from its `start` to the last moment of told trust.

use std::future::Pending;
use std::sync::Arc;

use incumbent::{Duty, Guarded, Loss, Moment, Term, WorkResult, clock};
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};

use super::desk::{Counted, Desk, Ending};
use crate::hold::{Hold, LONGEST, Order, Report, Stage, Start, Why, draw};
use crate::holding::party;
use crate::holds::Place;
use crate::keeper::reason;
use crate::kept::Kept;

/// What the library runs for a duty. Dropped by it, because the duty must end at once, the run goes on until
/// told trust is over, and keeps the lease.
pub(super) async fn run(desk: &Arc<Desk>, duty: Duty) -> WorkResult {
    let (hold, orders) = Hold::new(Start {
        id: draw().ok_or("the system gives no randomness")?,
        lease: duty.lease().as_str().to_owned(),
        candidate: desk.hold.candidate.clone(),
        address: desk.hold.address.clone(),
        ttl: desk.hold.ttl,
        grace: desk.hold.grace,
        watchdog: desk.hold.watchdog,
        family: false,
        above: Some(Arc::clone(&desk.hold)),
    });
    let place = desk.service.holds().place(party(desk.peer.as_deref()));
    let place = place.map_err(|_| "the server has no place for another run")?;
    // It is never polled: as long as it is there the lease isn't freed, whatever becomes of this future.
    let guard = duty.guard(std::future::pending());
    let (sender, ended) = oneshot::channel();
    let keeper = Run {
        kept: Some(Kept::new(guard, &hold)),
        _counted: desk.count(),
        _place: place,
        ending: desk.ending(),
        desk: Arc::clone(desk),
        hold,
        orders,
        duty,
    };
    keeper.desk.service.holds().add(&keeper.hold);
    desk.service.spawn(async move {
        let _ = sender.send(keeper.keep().await);
    });
    match ended.await {
        Ok(result) => Ok(result?),
        Err(_) => Err("the server gave the run up".into()),
    }
}

/// Keeps one run.
struct Run {
    desk: Arc<Desk>,
    hold: Arc<Hold>,
    orders: mpsc::UnboundedReceiver<Order>,
    ending: watch::Receiver<Ending>,
    duty: Duty,
    kept: Option<Kept<Guarded<Pending<()>>>>,
    _place: Place,
    // Last: the desk may close when this is gone.
    _counted: Counted,
}

/// How a run ends.
enum End {
    /// Nothing of it runs any more at the client.
    Now(Why, Result<(), String>),
    /// Once told trust is over.
    Later(Why),
}

impl Drop for Run {
    fn drop(&mut self) {
        self.desk.service.holds().remove(&self.hold);
    }
}

impl Run {
    async fn keep(mut self) -> Result<(), String> {
        let term = Term::clone(&self.duty);
        self.begin(&term);
        let end = self.renew(&term).await;
        // From here on nothing more is told.
        self.hold.ledger.close();
        let (why, result) = match end {
            End::Now(why, result) => (why, result),
            End::Later(why) => {
                self.say("abort", &term, why);
                self.hold.enter(Stage::Stopping);
                let result = self.outwait(&term).await;
                match why {
                    Why::Stuck => (why, Err("it reported no progress in time".to_owned())),
                    why => (why, result),
                }
            }
        };
        self.hold.enter(Stage::Over(why));
        self.desk.service.holds().ended(&self.hold, why);
        if let Some(kept) = self.kept.take() {
            kept.let_go();
        }
        result
    }

    /// From now on trust is told.
    fn begin(&mut self, term: &Term) {
        let files = self.desk.service.trust_files();
        if let Some(file) = files.create(&self.hold.id, &self.hold.name, term.number()) {
            self.hold.ledger.keep(file);
        }
        self.hold.begin(term);
        self.hold.tell();
        let mut line =
            json!({ "duty": self.duty.name(), "run": self.hold.name, "term": term.number() });
        if let (Some(file), Some(fields)) = (self.hold.ledger.file(), line.as_object_mut()) {
            fields.insert("trust_file".to_owned(), file.into());
        }
        self.desk.say("start", line);
    }

    /// Tells of each beat that gets through, until the run ends.
    async fn renew(&mut self, term: &Term) -> End {
        let mut until = term.trusted_until();
        let mut stopping: Option<(Why, Moment)> = None;
        loop {
            let patience = match self.hold.patience(stopping) {
                Ok(patience) => patience,
                Err(why) => return End::Later(why),
            };
            tokio::select! {
                biased;
                ending = ended(&mut self.ending) => {
                    return match ending {
                        Ending::Now(why) => End::Now(why, Ok(())),
                        Ending::Later(why) => End::Later(why),
                        Ending::No => End::Later(Why::Closed),
                    };
                }
                order = self.orders.recv() => match self.ordered(order) {
                    Some(Ordered::Ended(why, result)) => return End::Now(why, result),
                    Some(Ordered::Shutdown) if stopping.is_none() => {
                        stopping = Some(self.stop(term, Why::Shutdown));
                    }
                    Some(Ordered::Shutdown) | None => {}
                },
                lost = term.lost(), if stopping.is_none() => {
                    if lost.abrupt {
                        return End::Later(Why::Lost(lost.why));
                    }
                    let why = match lost.why {
                        Loss::Leaving => Why::Shutdown,
                        why => Why::Lost(why),
                    };
                    stopping = Some(self.stop(term, why));
                }
                next = term.trust_changed(until) => {
                    until = next;
                    if until == Moment::START {
                        return End::Later(Why::Lost(reason(term).await));
                    }
                    if self.desk.is_unheard() {
                        return End::Later(Why::Unheard);
                    }
                    self.hold.tell();
                }
                () = tokio::time::sleep(patience) => {}
            }
        }
    }

    fn ordered(&self, order: Option<Order>) -> Option<Ordered> {
        match order? {
            Order::Delete(answer) => {
                // It is freed with what follows.
                let _ = answer.send(());
                Some(Ordered::Ended(Why::Deleted, Ok(())))
            }
            Order::Report(Report::Stopped) => Some(Ordered::Ended(Why::Deleted, Ok(()))),
            Order::Report(Report::Failed(error)) => Some(Ordered::Ended(Why::Deleted, Err(error))),
            Order::Report(Report::Started) => {
                self.hold.progressed();
                self.duty.ready();
                None
            }
            Order::Report(Report::Progress(text)) => {
                self.duty.progress(text);
                None
            }
            Order::Shutdown => Some(Ordered::Shutdown),
            Order::Report(Report::Prepared { .. }) | Order::Closed | Order::Unclaimed => None,
        }
    }

    /// The duty shall end within the grace.
    fn stop(&self, term: &Term, why: Why) -> (Why, Moment) {
        self.hold.enter(Stage::Stopping);
        self.say("stop", term, why);
        (why, clock::now() + self.hold.grace)
    }

    fn say(&self, event: &str, term: &Term, why: Why) {
        let line = json!({
            "duty": self.duty.name(),
            "run": self.hold.name,
            "term": term.number(),
            "why": why.as_str(),
        });
        self.desk.say(event, line);
    }

    /// Until told trust is over; or the client says, or it is proven, that nothing of it runs.
    async fn outwait(&mut self, term: &Term) -> Result<(), String> {
        loop {
            let (now, told) = (clock::now(), self.hold.ledger.told());
            let Some(told) = told.filter(|told| now < *told) else {
                // Who trusts by a file has not been heard of since.
                return Err(format!("the client did not end term {} in its time", term.number()));
            };
            let pause = tokio::time::sleep(told.since(now).min(LONGEST));
            tokio::select! {
                biased;
                () = ended_now(&mut self.ending) => return Ok(()),
                order = self.orders.recv() => match self.ordered(order) {
                    Some(Ordered::Ended(_, result)) => return result,
                    Some(Ordered::Shutdown) | None => {}
                },
                () = pause => {}
            }
        }
    }
}

/// What an order means for a run.
enum Ordered {
    Ended(Why, Result<(), String>),
    Shutdown,
}

/// Until all runs of the client end, in whichever way.
async fn ended(ending: &mut watch::Receiver<Ending>) -> Ending {
    let ended = ending.wait_for(|ending| *ending != Ending::No).await;
    ended.map_or(Ending::No, |ending| *ending)
}

/// Until nothing of the client runs any more.
async fn ended_now(ending: &mut watch::Receiver<Ending>) {
    if ending.wait_for(|ending| matches!(ending, Ending::Now(_))).await.is_err() {
        // Nobody will say so, which says nothing about the client.
        std::future::pending::<()>().await;
    }
}
