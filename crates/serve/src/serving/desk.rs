//! What all runs of one client share: its stream, whether it lives, and how it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use incumbent::{Node, WorkResult, clock};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use crate::documents::{OnClose, millis};
use crate::hold::{Hold, Order, Report, Stage, Why};
use crate::holds::Place;
use crate::keeper::proof;
use crate::lines::Format;
use crate::peer::Peer;
use crate::service::Service;

/// No longer between two looks at the clock: timers stand still while a machine sleeps.
const LONGEST: Duration = Duration::from_secs(1);

/// How all runs of a client end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// Each once the trust that was told of it is over.
    Later(Why),
    /// Nothing of the client runs any more.
    Now(Why),
}

/// One for each client that serves a family.
pub(super) struct Desk {
    pub(super) service: Service,
    pub(super) hold: Arc<Hold>,
    pub(super) peer: Option<Arc<Peer>>,
    family: String,
    on_close: OnClose,
    lines: Mutex<Option<(Format, mpsc::Sender<Bytes>)>>,
    ending: watch::Sender<Ending>,
    /// How many runs there are.
    runs: watch::Sender<usize>,
    /// Who waits until the client is prepared for a duty.
    preparing: Mutex<HashMap<String, oneshot::Sender<Result<(), String>>>>,
}

impl Desk {
    pub(super) fn new(
        service: &Service,
        family: &str,
        hold: &Arc<Hold>,
        lines: (Format, mpsc::Sender<Bytes>),
        peer: Option<Arc<Peer>>,
        on_close: OnClose,
    ) -> Arc<Self> {
        Arc::new(Self {
            service: service.clone(),
            hold: Arc::clone(hold),
            peer,
            family: family.to_owned(),
            on_close,
            lines: Mutex::new(Some(lines)),
            ending: watch::Sender::new(Ending::No),
            runs: watch::Sender::new(0),
            preparing: Mutex::default(),
        })
    }

    /// The first line.
    pub(super) fn say_serving(&self) {
        let hold = &self.hold;
        self.say(
            "serving",
            json!({
                "family": self.family,
                "ttl_ms": millis(hold.ttl),
                "grace_ms": millis(hold.grace),
                "renew_ms": millis(hold.renew()),
            }),
        );
    }

    /// Sends a line; who doesn't read is cut off.
    pub(super) fn say(&self, event: &str, line: Value) {
        self.send(&mut lock(&self.lines), event, line);
    }

    /// Sends the last line.
    fn say_last(&self, event: &str, line: Value) {
        let mut lines = lock(&self.lines);
        self.send(&mut lines, event, line);
        *lines = None;
    }

    fn send(
        &self,
        lines: &mut Option<(Format, mpsc::Sender<Bytes>)>,
        event: &str,
        mut line: Value,
    ) {
        let Some((format, sender)) = lines else { return };
        if let Some(fields) = line.as_object_mut() {
            fields.insert("event".to_owned(), event.into());
            fields.insert("hold".to_owned(), self.hold.name.clone().into());
        }
        if sender.try_send(format.line(event, &line)).is_err() {
            // The stream ends with what is on its way.
            *lines = None;
            self.hold.order(Order::Closed);
        }
    }

    /// How all runs end, from now on.
    pub(super) fn ending(&self) -> watch::Receiver<Ending> {
        self.ending.subscribe()
    }

    /// Counts a run until that is dropped.
    pub(super) fn count(self: &Arc<Self>) -> Counted {
        self.runs.send_modify(|runs| *runs += 1);
        Counted(Arc::clone(self))
    }

    /// Whether the client wasn't heard of for a ttl.
    pub(super) fn is_unheard(&self) -> bool {
        if lock(&self.lines).is_some() && self.peer.as_ref().is_some_and(|peer| peer.has_read_all())
        {
            self.hold.hear_reading();
        }
        self.hold.unheard_for() > self.hold.ttl
    }

    /// Has the client prepare for a duty. Dropped before that is done, it won't come.
    pub(super) async fn prepare(self: Arc<Self>, duty: &str) -> WorkResult {
        let (sender, prepared) = oneshot::channel();
        lock(&self.preparing).insert(duty.to_owned(), sender);
        let waits = Waits { desk: Arc::clone(&self), duty: duty.to_owned() };
        self.say("prepare", json!({ "duty": duty }));
        let result = prepared.await;
        drop(waits);
        match result {
            Ok(result) => Ok(result?),
            Err(_) => Err("the client doesn't prepare for it any more".into()),
        }
    }

    fn prepared(&self, duty: &str, result: Result<(), String>) {
        if let Some(waits) = lock(&self.preparing).remove(duty) {
            let _ = waits.send(result);
        }
    }
}

/// Somebody waits until the client is prepared.
struct Waits {
    desk: Arc<Desk>,
    duty: String,
}

impl Drop for Waits {
    fn drop(&mut self) {
        if lock(&self.desk.preparing).remove(&self.duty).is_some() {
            self.desk.say("unprepare", json!({ "duty": self.duty }));
        }
    }
}

/// A run that counts.
pub(super) struct Counted(Arc<Desk>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.runs.send_modify(|runs| *runs = runs.saturating_sub(1));
    }
}

/// Keeps a client's desk.
pub(super) struct DeskKeeper {
    service: Service,
    desk: Arc<Desk>,
    node: Node,
    _serving: incumbent::Serving,
    orders: mpsc::UnboundedReceiver<Order>,
    answers: Vec<oneshot::Sender<()>>,
    _place: Place,
}

impl Drop for DeskKeeper {
    fn drop(&mut self) {
        // If it wasn't said how, because this is dropped with its runtime, told trust runs out.
        self.desk.ending.send_if_modified(|ending| {
            let news = *ending == Ending::No;
            if news {
                *ending = Ending::Later(Why::Closed);
            }
            news
        });
        self.service.holds().remove(&self.desk.hold);
    }
}

impl DeskKeeper {
    pub(super) fn new(
        service: &Service,
        desk: Arc<Desk>,
        node: Node,
        serving: incumbent::Serving,
        orders: mpsc::UnboundedReceiver<Order>,
        place: Place,
    ) -> Self {
        service.holds().add(&desk.hold);
        let (service, answers) = (service.clone(), Vec::new());
        Self { service, desk, node, _serving: serving, orders, answers, _place: place }
    }

    /// Until nothing that was told of any run may be trusted any more.
    pub(super) async fn run(mut self) {
        let ending = self.watch().await;
        self.desk.ending.send_replace(ending);
        let (Ending::Now(why) | Ending::Later(why)) = ending else { return };
        self.over(why);
        let leaving = self.node.clone();
        let leaving = async move {
            let _ = leaving.leave().await;
        };
        tokio::join!(leaving, self.outwait());
        tracing::debug!(hold = %self.desk.hold.name.get(..8).unwrap_or_default(), family = self.desk.family, why = why.as_str(), action = "serve", "over");
        for answer in self.answers.drain(..) {
            let _ = answer.send(());
        }
    }

    /// Until the client serves no longer.
    async fn watch(&mut self) -> Ending {
        let (desk, mut shuts_down) = (Arc::clone(&self.desk), false);
        let mut proof = std::pin::pin!(proof(desk.peer.as_deref(), desk.on_close));
        let mut runs = desk.runs.subscribe();
        let mut next_sign = clock::now() + desk.hold.renew();
        loop {
            let pause = next_sign.since(clock::now()).min(LONGEST);
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Delete(answer)) => {
                        self.answers.push(answer);
                        return Ending::Now(Why::Deleted);
                    }
                    Some(Order::Closed | Order::Unclaimed) | None => return Ending::Later(Why::Closed),
                    Some(Order::Shutdown) => {
                        shuts_down = true;
                        // Each duty is told to stop, and none is placed here any more.
                        let node = self.node.clone();
                        self.service.spawn(async move {
                            let _ = node.leave().await;
                        });
                    }
                    Some(Order::Report(Report::Prepared { duty, result })) => {
                        desk.prepared(&duty, result);
                    }
                    Some(Order::Report(_)) => {}
                },
                () = &mut proof => return Ending::Now(Why::Ended),
                () = none_left(&mut runs), if shuts_down => {
                    return Ending::Later(Why::Shutdown);
                }
                () = tokio::time::sleep(pause) => {
                    if desk.is_unheard() {
                        return Ending::Later(Why::Unheard);
                    }
                    if clock::now() >= next_sign {
                        next_sign = clock::now() + desk.hold.renew();
                        desk.say("alive", json!({}));
                    }
                }
            }
        }
    }

    /// It serves no longer.
    fn over(&self, why: Why) {
        let hold = &self.desk.hold;
        self.desk.say_last("lost", json!({ "why": why.as_str() }));
        lock(&self.desk.preparing).clear();
        hold.enter(Stage::Over(why));
        self.service.holds().ended(hold, why);
    }

    /// Until the last run is over; at once when the client says, or it is proven, that none runs.
    async fn outwait(&mut self) {
        let desk = Arc::clone(&self.desk);
        let mut proof = std::pin::pin!(proof(desk.peer.as_deref(), desk.on_close));
        let (mut runs, mut proven) = (desk.runs.subscribe(), false);
        loop {
            tokio::select! {
                biased;
                () = none_left(&mut runs) => return,
                order = self.orders.recv() => match order {
                    Some(Order::Delete(answer)) => {
                        self.answers.push(answer);
                        desk.ending.send_replace(Ending::Now(Why::Deleted));
                    }
                    Some(_) => {}
                    None => tokio::time::sleep(LONGEST).await,
                },
                () = &mut proof, if !proven => {
                    proven = true;
                    desk.ending.send_replace(Ending::Now(Why::Ended));
                }
            }
        }
    }
}

/// Until there is no run; the sender is at the desk, so that this can't fail.
async fn none_left(runs: &mut watch::Receiver<usize>) {
    let _ = runs.wait_for(|runs| *runs == 0).await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
