//! Drives the core of one node: clock in, requests out, replies in, events out.
//!
//! It is a task on incumbent's own thread, and no code of the application runs in it.

mod attempts;
mod batch;
pub(crate) mod chorus;
pub mod clock;
pub(crate) mod command;
mod commands;
mod counting;
mod duties;
mod events;
pub(crate) mod exchange;
pub(crate) mod foreign;
mod health;
mod lanes;
mod leaders;
mod leaving;
#[cfg_attr(
    not(feature = "mutants"),
    allow(dead_code, unreachable_pub, reason = "described, and never planted")
)]
pub(crate) mod mutant;
pub(crate) mod obstacles;
pub(crate) mod origin;
pub(crate) mod panic;
mod planning;
mod posting;
mod recovery;
pub(crate) mod seed;
mod subscribers;
pub(crate) mod telling;
pub(crate) mod thread;
mod waiters;
mod witnesses;
pub(crate) mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::store::HintGuard;
use incumbent_core::{Config, LeaseName, MemberId, Moment, Past, Stance};
use incumbent_duties::{DutyNode as Protocol, Placement};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::driver::command::{Command, Commands};
use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::origin::Origin;
use crate::error::JoinError;
use crate::hint::{HintSettings, Post};
use crate::lead::hold::Hold;
use crate::lead::seat::Seat;
use crate::lead::tenure::Tenure;
use crate::lead::trust::Trust;
use crate::node::shared::{HeldTerms, Shared};
use crate::open::OpenStore;

use attempts::Attempts;
use counting::Counting;
use duties::Duties;
use health::LanesHealth;
use lanes::{Landed, Lanes};
use leaders::Leaders;
use leaving::Leaving;
use planning::Plans;
use recovery::Kept;
pub(crate) use recovery::run;
use subscribers::Subscribers;
pub(crate) use subscribers::queue;
use waiters::Waiters;
use witnesses::Witnesses;

/// The clock is looked at this often, whatever the timers do: they stand still while the machine
/// sleeps.
const LONGEST: Duration = Duration::from_secs(1);

/// What a driver needs to start.
pub(crate) struct DriverStart {
    pub(crate) config: Config,
    pub(crate) placement: Placement,
    pub(crate) seed: u64,
    pub(crate) store: OpenStore,
    pub(crate) cluster: Arc<str>,
    pub(crate) grace: Duration,
    pub(crate) witness: bool,
    /// Whether the end of this process is the end of all that this node does.
    pub(crate) proven: bool,
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: Commands,
    pub(crate) queue: UnboundedReceiver<Command>,
    pub(crate) joined: oneshot::Sender<Result<(), JoinError>>,
    pub(crate) join_within: Duration,
    pub(crate) past: Option<Past>,
    pub(crate) hints: Arc<HintSettings>,
}

pub(crate) struct Driver {
    core: Protocol,
    config: Config,
    placement: Placement,
    cluster: Arc<str>,
    grace: Duration,
    lanes: Lanes,
    commands: Commands,
    queue: UnboundedReceiver<Command>,
    hints: Arc<Notify>,
    _hint_guard: Option<HintGuard>,
    hint_settings: Arc<HintSettings>,
    /// What other nodes are told and say, where the store pushes nothing.
    post: Option<Post>,
    shared: Arc<Shared>,

    /// The present incarnation and its trust.
    trust: Option<(MemberId, Arc<Trust>)>,
    campaigns: BTreeMap<LeaseName, Candidate>,
    /// Terms under which work runs, or may still run.
    tenures: BTreeMap<LeaseName, Arc<Tenure>>,
    /// Shared with those who ask until it changes, and copied then.
    held: Arc<HeldTerms>,
    held_changed: bool,
    /// Leaderships to be handed out once they are published.
    elected: Vec<(Arc<Seat>, Arc<Hold>)>,

    duties: Duties,
    plans: Plans,
    attempts: Attempts,
    waiters: Waiters,
    witnesses: Witnesses,
    subscribers: Subscribers,
    leaders: Leaders,
    health: LanesHealth,
    counting: Counting,
    joining: Option<Joining>,
    leaving: Option<Leaving>,
    /// What this node has to do beside its duties.
    load: Option<u64>,
    /// The core panicked, and is to be replaced.
    broken: bool,
    /// Terms from before that, whose work has not ended yet: until it has, this node doesn't stand
    /// for their leases (O43).
    unfinished: BTreeMap<LeaseName, u64>,
    kept: Kept,
    /// A forked child must not beat for its parent.
    origin: Origin,
    over: bool,
}

/// A campaign, seen from here.
struct Candidate {
    seat: Arc<Seat>,
    candidacy: Stance,
    grace: Duration,
}

/// Somebody waits for the first incarnation.
struct Joining {
    answer: oneshot::Sender<Result<(), JoinError>>,
    since: Moment,
    waits: Duration,
}

impl Joining {
    fn until(&self) -> Moment {
        self.since + self.waits
    }
}

impl Driver {
    fn new(start: DriverStart) -> Self {
        let DriverStart { mut config, store, cluster, shared, .. } = start;
        let hint_settings = start.hints;
        let seen = Cluster {
            store: store.clone(),
            name: Arc::clone(&cluster),
            hints: Arc::clone(&hint_settings),
        };
        let hints = Arc::new(Notify::new());
        let wake = Arc::clone(&hints);
        let hint_guard = store.hints(&cluster, Arc::new(move || wake.notify_one()));
        config.push = hint_guard.is_some();
        let now = clock::now();
        let needs_hints = hint_guard.is_none() && store.capabilities().shared;
        let post = needs_hints.then(|| Post::open(&hint_settings, now)).flatten();
        config.profile.control = post.as_ref().map(Post::control);
        let mut core = Protocol::new(config.clone(), start.placement.clone(), start.seed, now);
        if let Some(past) = start.past {
            core.recall(past);
        }
        // Where the lead of the cluster is stood for, its leader looks after what is left behind.
        let visible = (!config.membership).then_some(config.timing.visible);
        let joining = Joining { answer: start.joined, since: now, waits: start.join_within };
        Self {
            core,
            lanes: Lanes::new(store, Arc::clone(&cluster), config.timing.rhythm),
            cluster,
            grace: start.grace,
            commands: start.commands.clone(),
            queue: start.queue,
            hints,
            _hint_guard: hint_guard,
            hint_settings,
            shared,
            trust: None,
            campaigns: BTreeMap::new(),
            tenures: BTreeMap::new(),
            held: Arc::default(),
            held_changed: false,
            elected: Vec::new(),
            duties: Duties::default(),
            plans: Plans::default(),
            attempts: Attempts::default(),
            waiters: Waiters::default(),
            witnesses: Witnesses::new(start.witness, seen, start.commands.clone(), visible)
                .of_proven(start.proven)
                .with_post(post.is_some()),
            post,
            subscribers: Subscribers::default(),
            leaders: Leaders::default(),
            health: LanesHealth::new(&config.profile.node),
            counting: Counting::default(),
            joining: Some(joining),
            leaving: None,
            load: None,
            broken: false,
            unfinished: BTreeMap::new(),
            kept: Kept::default(),
            origin: Origin::here(),
            over: false,
            placement: start.placement,
            config,
        }
    }

    async fn run(&mut self) {
        self.start_over();
        loop {
            if !self.origin.is_here() {
                return;
            }
            self.attend_post();
            self.step();
            if self.over {
                self.attend_post();
                return;
            }
            let nap = self.nap();
            tokio::select! {
                biased;
                Some(landed) = self.lanes.landed(), if !self.lanes.is_idle() => self.landed(landed),
                Some(command) = self.queue.recv() => self.obey_all(command),
                () = self.hints.notified() => self.hinted(),
                () = posting::called(self.post.as_ref()) => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
    }

    /// Does all that is due. A reaction may give the core something to do at once, hence the
    /// rounds. Should they ever not suffice, the rest is done at the next wake-up, which comes after
    /// [`LONGEST`] at the latest.
    fn step(&mut self) {
        #[cfg(feature = "testing")]
        crate::testing::strike();
        for _ in 0..8 {
            let now = clock::now();
            self.shared.pulse.turn(now);
            self.core.tell_wall(clock::wall_ms());
            self.core.poll(now);
            self.publish_trust(now);
            self.settle_doubts(now);
            let mut reacted = self.react();
            self.sight_leaders();
            self.publish_leaders();
            self.publish_held();
            self.publish_counting();
            while let Some(request) = self.core.next_request() {
                if let Some(post) = &mut self.post {
                    post.asks(&request);
                }
                self.lanes.push(request);
            }
            reacted |= self.plan();
            self.lanes.dispatch(now);
            if !reacted {
                break;
            }
        }
        let now = clock::now();
        self.check_attempts(now);
        self.waiters.expire(now);
        self.check_joining(now);
        self.check_leaving(now);
        self.witnesses.forget_unwanted(self.core.wanted_duties());
        if self.subscribers.fell_behind() {
            let state = self.state();
            self.subscribers.catch_up(&state);
        }
    }

    /// How long to sleep unless something happens. Timers only wake: all decisions compare
    /// moments.
    fn nap(&self) -> Duration {
        let deadlines = [
            self.core.wake_at(),
            self.attempts.wake_at(),
            self.waiters.wake_at(),
            self.joining.as_ref().map_or(Moment::NEVER, Joining::until),
            self.leaving.as_ref().map_or(Moment::NEVER, Leaving::wake_at),
            self.post_wakes_at(),
        ];
        let soonest = deadlines.into_iter().min().unwrap_or(Moment::NEVER);
        soonest.since(clock::now()).clamp(Duration::from_millis(1), LONGEST)
    }

    fn landed(&mut self, landed: Landed) {
        self.note_health(&landed);
        self.count_exchange(&landed);
        for (id, answer) in landed.answers {
            if let (Err(error), Some(_)) = (&answer, &self.joining) {
                self.refuse_joining(error);
            }
            if let Some(post) = &mut self.post {
                post.answered(id, &answer);
            }
            // Read for each: what comes later is not older than it is.
            self.core.handle(clock::now(), id, answer.map_err(|error| error.kind));
        }
    }

    /// What anybody is told from now on about trust: before any event is acted on, because an
    /// end must be known here first.
    fn publish_trust(&mut self, now: Moment) {
        let Some((member, trust)) = &self.trust else { return };
        if self.core.member() != Some(member) {
            return trust.stop();
        }
        let mut until = self.core.trusted_until();
        if planted(DriverMutant::TrustWithoutMargin) {
            until = until + self.config.timing.margin;
        }
        self.shared.pulse.beat(self.config.timing.sent(until));
        self.counting.trust(&self.shared.meters, &self.config.timing, now, until);
        if !trust.publish(until) && now < until {
            // Its end was seen elsewhere before this thread took in a beat. What hangs from it is
            // over, and all of that is doubted; what is elected from now on hangs from another.
            let trust = Trust::start(until);
            trust.doubt();
            self.shared.pulse.trust(&trust);
            self.trust = Some((member.clone(), trust));
        }
    }

    /// A term that somebody was told is over is given up, even if a beat got through in that
    /// very moment: an answer of no is final.
    fn settle_doubts(&mut self, now: Moment) {
        let Some((_, trust)) = &self.trust else { return };
        if !trust.take_doubt() {
            return;
        }
        for tenure in self.tenures.values().filter(|tenure| tenure.is_doubted()) {
            self.core.resign(now, &tenure.lease, tenure.term, None);
        }
    }

    /// Publishes what is held, then hands out what is new.
    fn publish_held(&mut self) {
        if std::mem::take(&mut self.held_changed) {
            self.shared.held.store(Arc::clone(&self.held));
        }
        for (seat, hold) in std::mem::take(&mut self.elected) {
            if hold.tenure.lost().is_none() {
                seat.put(hold);
            }
        }
        self.start_duties();
    }

    fn check_joining(&mut self, now: Moment) {
        if let Some(joining) = self.joining.take_if(|joining| now >= joining.until()) {
            let last = self.health.last().unwrap_or("the store has not answered").to_owned();
            let _ = joining.answer.send(Err(JoinError::TimedOut { waited: joining.waits, last }));
            self.over = true;
        }
    }
}

impl Drop for Driver {
    /// Whatever ended the driver, a bug included: nobody trusts anything after it.
    fn drop(&mut self) {
        let trust = self.trust.take();
        if let Some((_, trust)) = &trust {
            trust.stop();
        }
        self.farewell();
        if let Some((_, trust)) = &trust {
            trust.end();
        }
    }
}
