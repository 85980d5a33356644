//! Duties for programs in any language: `serve`, and what clients report.
//!
//! A client that serves a family is a member of its own, as one that holds a lease is. Each duty that is placed
//! on it runs under the duty's own lease and has a hold of its own, the *run*, by which the client knows how
//! long to trust (`run.rs`). What all runs of a client share is at its desk (`desk.rs`).

mod desk;
mod run;

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use incumbent::{ClusterLead, DutyDescription, FamilyWork, Node, ServeError};
use tokio::sync::mpsc;

use crate::call::{Answer, Call, check_texts};
use crate::documents::{ProgressRequest, ReportRequest, Reported, ServeRequest};
use crate::hold::{Hold, Order, Report, Stage, Start, Stream, draw};
use crate::holding::{GRACE, JOIN, LONGEST_GRACE, party, status, watchdog};
use crate::holds::Holds;
use crate::lines::{Format, Lines};
use crate::problem::{Problem, STORE};
use crate::service::Service;
use crate::span;
use desk::{Desk, DeskKeeper};

/// So many lines wait for a client at most: two for each duty that it may have.
const LINES: usize = 2 * crate::holds::EACH;

/// So many duties are listed by one client at most.
const DUTIES: usize = 10_000;

/// So much of an error is kept.
const ERROR: usize = 500;

/// `POST /v1/families/{family}/serve`.
pub(crate) async fn serve(call: Call) -> Answer {
    call.know(&[])?;
    let asked = Asked::read(&call)?;
    let place = call.service.holds().place(party(call.peer.as_deref()))?;
    let format = Format::of(&call.headers);
    let (sender, receiver) = mpsc::channel(LINES);
    let node = asked.join(&call.service).await?;
    let (hold, orders) = Hold::new(asked.start()?);
    hold.enter(Stage::Serving);
    let on_close = asked.request.on_close.unwrap_or_default();
    let desk =
        Desk::new(&call.service, &asked.family, &hold, (format, sender), call.peer, on_close);
    // Before anything is placed there.
    desk.say_serving();
    let serving = node.serve(asked.family(&desk))?;
    let response = Lines::response(format, receiver, Stream::of(&hold));
    let keeper = DeskKeeper::new(&call.service, desk, node, serving, orders, place);
    call.service.spawn(keeper.run());
    Ok(response)
}

/// `POST /v1/holds/{id}/report`.
pub(crate) async fn report(call: Call) -> Answer {
    call.know(&[])?;
    let ReportRequest { state, duty, error } = call.body()?;
    let hold = call.service.holds().find(call.parameter("id"))?;
    let error = error.unwrap_or_else(|| "the client gave no reason".to_owned());
    let error: String = error.chars().take(ERROR).collect();
    let report = match (hold.stage(), state, duty) {
        (Stage::Serving, Reported::Prepared, Some(duty)) => {
            Report::Prepared { duty, result: Ok(()) }
        }
        (Stage::Serving, Reported::Failed, Some(duty)) => {
            Report::Prepared { duty, result: Err(error) }
        }
        (Stage::Serving, _, _) => {
            let said = "of a family this says \"prepared\" or \"failed\" with a \"duty\"; all else is reported of \
                        the duty's own \"run\"";
            return Err(Problem::bad(said));
        }
        _ if !hold.is_run() => {
            return Err(Problem::bad(
                "this hold has no duty: there is nothing to report for a lease",
            ));
        }
        (_, Reported::Started, _) => Report::Started,
        (_, Reported::Stopped, _) => Report::Stopped,
        (_, Reported::Failed, _) => Report::Failed(error),
        (_, Reported::Prepared, _) => {
            let said = "report \"prepared\" for the family's \"hold\", not for a duty's \"run\"";
            return Err(Problem::bad(said));
        }
    };
    hold.hear();
    hold.order(Order::Report(report));
    Ok(status(StatusCode::NO_CONTENT))
}

/// `POST /v1/holds/{id}/progress`.
pub(crate) async fn progress(call: Call) -> Answer {
    call.know(&[])?;
    let text = call.body::<ProgressRequest>()?.text;
    let hold = call.service.holds().find(call.parameter("id"))?;
    if let Stage::Over(why) = hold.stage() {
        return Err(Holds::gone(&hold.lease, hold.term().map(|(term, _)| term.number()), why));
    }
    if hold.term().is_none() {
        return Err(Problem::bad("nothing is held yet, so there is no progress to report"));
    }
    hold.hear();
    hold.progressed();
    if let Some(text) = text.filter(|_| hold.is_run()) {
        hold.order(Order::Report(Report::Progress(text)));
    }
    Ok(status(StatusCode::NO_CONTENT))
}

/// What a client asks for, checked.
struct Asked {
    family: String,
    request: ServeRequest,
    ttl: Duration,
    grace: Duration,
    watchdog: Option<Duration>,
}

impl Asked {
    fn read(call: &Call) -> Result<Self, Problem> {
        let request: ServeRequest = call.body()?;
        let texts =
            [("address", request.address.as_deref()), ("version", request.version.as_deref())];
        check_texts(request.labels.as_ref(), &texts)?;
        let (service, hour) = (&call.service, Duration::from_secs(3600));
        let ttl = match &request.ttl {
            Some(ttl) => span::read("ttl", ttl, service.least_ttl(), hour)?,
            None => service.ttl(),
        };
        let grace = match &request.grace {
            Some(grace) => span::read("grace", grace, Duration::ZERO, LONGEST_GRACE)?,
            None => GRACE,
        };
        let watchdog = watchdog(request.watchdog.as_deref())?;
        if request.duties.len() > DUTIES {
            let said = format!(
                "{} duties are listed, and the limit for one client is {DUTIES}. Let each client list a part of them",
                request.duties.len()
            );
            return Err(Problem::bad(said));
        }
        Ok(Self { family: call.parameter("family").to_owned(), request, ttl, grace, watchdog })
    }

    /// Makes a member for the client, and for nobody else.
    async fn join(&self, service: &Service) -> Result<Node, Problem> {
        let cluster = service.cluster();
        let mut builder = Node::builder()
            .cluster(cluster.name())
            .name(&self.request.name)
            .ttl(self.ttl)
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
        if let Some(capacity) = self.request.capacity {
            builder = builder.capacity(capacity);
        }
        if let Some(duties) = self.request.max_duties {
            builder = builder.max_duties(duties);
        }
        for (name, value) in self.request.labels.iter().flatten() {
            builder = builder.label(name, value);
        }
        Ok(builder.join(cluster.store()).await?)
    }

    fn start(&self) -> Result<Start, Problem> {
        let id = draw().ok_or_else(|| Problem::new(&STORE, "the system gives no randomness"))?;
        Ok(Start {
            id,
            lease: self.family.clone(),
            candidate: self.request.name.clone(),
            address: self.request.address.clone(),
            ttl: self.ttl,
            grace: self.grace,
            watchdog: self.watchdog,
            family: true,
            above: None,
        })
    }

    fn family(&self, desk: &Arc<Desk>) -> FamilyWork {
        // All are listed as the version that the client runs, so that they change over to the newest.
        let described = |name: &String| match &self.request.version {
            Some(version) => DutyDescription::named(name).version(version),
            None => DutyDescription::named(name),
        };
        let mut family = incumbent::family(&self.family)
            .duties(self.request.duties.iter().map(described))
            // What was told may last for a ttl after the client's own grace.
            .grace(self.grace + self.ttl)
            .waits_for_ready();
        if let Some(version) = &self.request.version {
            family = family.version(version);
        }
        if self.request.prepares == Some(true) {
            let desk = Arc::clone(desk);
            family = family.prepare(move |upcoming| {
                let desk = Arc::clone(&desk);
                async move { desk.prepare(upcoming.name()).await }
            });
        }
        family.run_with(Arc::clone(desk), |desk, duty| async move { run::run(&desk, duty).await })
    }
}

impl From<ServeError> for Problem {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Name(error) => error.into(),
            other => Self::new(&STORE, other.to_string()),
        }
    }
}
