//! Reaching the store and becoming a member, for as long as the flags allow.

use std::time::Duration;

use incumbent::store::ErrorKind;
use incumbent::{JoinError, Moment, Node, OpenError, OpenStore, Past, clock};
use incumbent_supervise::Guard;

use super::RunArguments;
use super::notify::notify;
use crate::exit::{Code, Failure, Outcome};
use crate::out::plain;
use crate::session::Session;

/// How long a store is waited for at the first start, unless a flag says otherwise, and by one
/// attempt at any other.
const USUAL: Duration = Duration::from_secs(30);
/// How long `--no-wait` gives the store to answer: it is about others who have the lease.
const PROMPT: Duration = Duration::from_secs(5);
/// After so long it is said that the store is waited for.
const SILENCE: Duration = Duration::from_secs(1);
/// Between two attempts: at first, and at last.
const SOONEST: Duration = Duration::from_millis(200);
const LATEST: Duration = Duration::from_secs(3);

/// How long the store is waited for.
pub(crate) struct Patience {
    until: Option<Moment>,
    /// Who says so.
    flag: &'static str,
}

impl Patience {
    /// As the flags say. Who starts again after a loss waits for ever: the store has been there, and
    /// its absence may be what the lease was lost for.
    pub(crate) fn new(arguments: &RunArguments, again: bool) -> Self {
        let (span, flag) = match (again, arguments.no_wait, arguments.wait) {
            (true, ..) => return Self { until: None, flag: "--restart" },
            (false, true, _) => (PROMPT, "--no-wait"),
            (false, false, Some(wait)) => (wait, "--wait"),
            (false, false, None) => (USUAL, "the first start"),
        };
        Self { until: Some(clock::now() + span), flag }
    }

    /// How long one attempt may take.
    fn left(&self) -> Duration {
        self.until.map_or(USUAL, |until| until.since(clock::now()))
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| clock::now() >= until)
    }

    /// What is left of it for the lease, if that is bounded by the same flag.
    pub(crate) fn of_lease(&self, arguments: &RunArguments) -> Option<Duration> {
        arguments.wait.map(|wait| self.until.map_or(wait, |until| until.since(clock::now())))
    }
}

/// Opens the store and joins, again and again while that may help; says what goes on meanwhile.
pub(crate) async fn join(
    session: &Session,
    arguments: &RunArguments,
    guard: &Guard,
    patience: &Patience,
    past: Option<&Past>,
) -> Outcome<(OpenStore, Node)> {
    let mut teller = Teller { session, said: None };
    let mut pause = SOONEST;
    loop {
        let refusal = match teller.during(attempt(session, arguments, guard, patience, past)).await
        {
            Ok(joined) => {
                teller.done();
                return Ok(joined);
            }
            Err(refusal) => refusal,
        };
        // What was right before may be right again: a server that comes back refuses for a while.
        let again = refusal.passes || patience.until.is_none();
        if !again || refusal.failure.code != Code::Unreachable {
            return Err(refusal.failure);
        }
        if !patience.is_over() {
            teller.say(&refusal.failure.message);
            tokio::time::sleep(pause.min(patience.left())).await;
        }
        if patience.is_over() {
            return Err(late(patience, &refusal.failure));
        }
        pause = (pause * 2).min(LATEST);
    }
}

/// Why an attempt came to nothing.
struct Refusal {
    failure: Failure,
    /// Whether another attempt may get through, with everything as it is.
    passes: bool,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, passes: false }
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        let passes = match &error {
            OpenError::Store { source, .. } => match source.kind {
                ErrorKind::Unavailable | ErrorKind::Unknown => true,
                ErrorKind::Rejected => false,
            },
            _ => false,
        };
        Self { failure: error.into(), passes }
    }
}

impl From<JoinError> for Refusal {
    fn from(error: JoinError) -> Self {
        let passes = matches!(error, JoinError::TimedOut { .. });
        Self { failure: error.into(), passes }
    }
}

async fn attempt(
    session: &Session,
    arguments: &RunArguments,
    guard: &Guard,
    patience: &Patience,
    past: Option<&Past>,
) -> Result<(OpenStore, Node), Refusal> {
    let place = &session.place;
    let Ok(opened) = tokio::time::timeout(patience.left(), place.try_open()).await else {
        let silent = format!("the store {} has not answered", place.shown());
        return Err(Refusal { failure: Failure::new(Code::Unreachable, silent), passes: true });
    };
    let store = opened??;
    let mut builder = Node::builder()
        .cluster(&place.cluster)
        .ttl(arguments.ttl())
        .grace(arguments.grace())
        .without_membership()
        .hints(place.hints.clone())
        .join_timeout(readable(patience.left()));
    if arguments.no_witness {
        builder = builder.without_witness();
    }
    if let Some(past) = past {
        builder = builder.past(past.clone());
    }
    builder = match &arguments.node {
        Some(name) => builder.name(name),
        None => builder.name(format!("{}:{}", incumbent::host_name(), std::process::id())),
    };
    if !arguments.no_witness {
        match guard.evidence() {
            Ok(evidence) => builder = builder.evidence(evidence),
            Err(error) => session.detail(format!(
                "should this process be killed, others wait for its ttl, because nothing proves its \
                 death: {error}"
            )),
        }
    }
    let node = builder.join(&store).await?;
    Ok((store, node))
}

/// In tenths of a second, for it is told to people.
fn readable(span: Duration) -> Duration {
    Duration::from_millis(
        u64::try_from(span.as_millis().div_ceil(100))
            .map_or(u64::MAX, |tenths| tenths.saturating_mul(100)),
    )
}

fn late(patience: &Patience, last: &Failure) -> Failure {
    let advice = match patience.flag {
        "--no-wait" => "`incumbent doctor` says more; --wait SPAN waits longer",
        _ => "`incumbent doctor` says more",
    };
    let message =
        format!("{}. That is all the time that {} gives it: {advice}", last.message, patience.flag);
    Failure::new(Code::Unreachable, message)
}

/// Says what is waited for, and again when that changes.
struct Teller<'a> {
    session: &'a Session,
    said: Option<String>,
}

impl Teller<'_> {
    /// Waits, and says so if it takes long.
    async fn during<T>(&mut self, attempt: impl Future<Output = T>) -> T {
        let mut attempt = std::pin::pin!(attempt);
        if self.said.is_none() {
            tokio::select! {
                done = &mut attempt => return done,
                () = tokio::time::sleep(SILENCE) => {
                    self.say("it has not admitted this node yet");
                }
            }
        }
        attempt.await
    }

    fn say(&mut self, why: &str) {
        if self.said.as_deref() != Some(why) {
            let store = self.session.place.shown();
            self.session.remark(format!("waiting for the store {store}: {}", plain(why)));
            notify(&format!("STATUS=waiting for the store {store}"));
            self.said = Some(why.to_owned());
        }
    }

    fn done(&self) {
        if self.said.is_some() {
            self.session.remark("the store answers");
        }
    }
}
