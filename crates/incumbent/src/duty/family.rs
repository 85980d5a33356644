use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::records::{Canary, FamilyProfile, Overdue};
use incumbent_duties::records::DutySpec;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::runtime::Restart;
use super::upcoming::{Hook, Prepare, Upcoming};
use super::{Duty, DutyDescription, FamilyRuntime};
use crate::error::{BoxError, WorkResult};
use crate::lead::candidacy::Overrun;
use crate::lead::{AsyncJob, BlockingJob, Job, Runner};

/// A kind of duties, by its name, which may have no slash. See [`Family`].
#[must_use]
pub fn family(name: impl Into<String>) -> Family {
    Family::new(name.into())
}

/// Describes a kind of duty: the list of its duties, and how this node runs one. Finish it with
/// [`Self::run`] or [`Self::run_blocking`], and give it to [`Node::serve`](crate::Node::serve).
///
/// # How a duty ends
///
/// | what happens | what follows |
/// | --- | --- |
/// | it says `Ok` | it is done, and stays so while this node has it; or see [`Self::on_done`] |
/// | it fails or panics | it is started again after a pause that grows from a second to a minute ([`Self::restart_pause`]) |
/// | it fails three times in a row ([`Self::give_up_after`]) | the leader moves it to another node that can run it; if there is none, it is tried here on |
/// | it is told to stop | it has the [grace period](Self::grace) to end, then it is aborted; its lease is freed when it has ended |
/// | it was told to stop before it was ready | it is aborted at once |
/// | trust is over | it takes no further step: it is dropped at the `await` where it is, and nothing of it runs but `Drop` |
///
/// The result of a duty that was told to stop doesn't count. Tasks that a duty spawns are
/// independent of it; [`Term::guard`](crate::Term::guard) puts them under the duty.
#[derive(Clone)]
pub struct Family {
    name: String,
    list: List,
    profile: FamilyProfile,
    waits_for_ready: bool,
    overrun: Overrun,
    restart: Restart,
    refresh: Duration,
    watchdog: Option<Duration>,
    prepare: Option<Hook>,
}

/// A family and its work, for [`Node::serve`](crate::Node::serve).
#[must_use = "nothing runs before `Node::serve` has it"]
pub struct FamilyWork {
    pub(super) family: Family,
    job: MakeJob,
}

/// What follows when a duty says `Ok`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDone {
    /// It is done: it stays down for as long as this node has it. A node that gets it later starts it
    /// anew, and so does this one after a restart.
    #[default]
    StayDown,
    /// It is started again after this pause.
    RestartAfter(Duration),
}

type MakeJob = Box<dyn FnOnce(Handle) -> Box<dyn Job<Duty>> + Send>;
type Computed = Pin<Box<dyn Future<Output = Result<Vec<DutySpec>, BoxError>> + Send>>;
pub(super) type Compute = Arc<dyn Fn() -> Computed + Send + Sync>;

/// Where a family's duties come from.
#[derive(Clone)]
pub(super) enum List {
    Fixed(Vec<DutySpec>),
    Computed(Compute),
}

impl Family {
    fn new(name: String) -> Self {
        Self {
            name,
            list: List::Fixed(Vec::new()),
            profile: FamilyProfile::default(),
            waits_for_ready: false,
            overrun: Overrun::default(),
            restart: Restart {
                done: OnDone::default(),
                first: Duration::from_secs(1),
                longest: Duration::from_secs(60),
                give_up: 3,
            },
            refresh: Duration::from_secs(30),
            watchdog: None,
            prepare: None,
        }
    }

    /// All duties of the family that should run, in the whole cluster. Nodes may know different
    /// ones: what any live node knows is placed. [`Serving`](super::Serving) changes them later.
    #[must_use]
    pub fn duties<L>(mut self, duties: L) -> Self
    where
        L: IntoIterator,
        L::Item: Into<DutyDescription>,
    {
        self.list = List::Fixed(specs(duties));
        self
    }

    /// The duties are computed, and computed again [every 30 s](Self::refresh). If that fails or
    /// panics, the list stays as it was, the error is logged, and it is tried again.
    #[must_use]
    pub fn duties_with<F, Fut, L>(mut self, compute: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<L, BoxError>> + Send + 'static,
        L: IntoIterator,
        L::Item: Into<DutyDescription>,
    {
        let compute = move || -> Computed {
            let list = compute();
            Box::pin(async move { Ok(specs(list.await?)) })
        };
        self.list = List::Computed(Arc::new(compute));
        self
    }

    /// From one computation of the list to the next (30 s).
    #[must_use]
    pub fn refresh(mut self, every: Duration) -> Self {
        self.refresh = every;
        self
    }

    /// A version of the family that this node can run: duties that name a version run only on
    /// nodes that have it. May be repeated.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.profile.versions.insert(version.into());
        self
    }

    /// The order of the family's versions, oldest first, where their names don't tell: semantic
    /// versions do. It counts if it names all that are in use; otherwise the version that a node
    /// listed last is the newest.
    #[must_use]
    pub fn versions_in_order<V: Into<String>>(
        mut self,
        versions: impl IntoIterator<Item = V>,
    ) -> Self {
        self.profile.order = versions.into_iter().map(Into::into).collect();
        self
    }

    /// What this node does before a duty changes over to it from another version: warm a cache,
    /// fetch a snapshot. The duty goes on where it is until this has returned `Ok`, and its room here
    /// is reserved meanwhile. Without this, a duty changes over at once.
    ///
    /// It runs *without* the duty's lease, beside the work on the other node, so it must change
    /// nothing that the duty owns. It is aborted at its next `await` if the duty won't come. If it
    /// fails, it is tried again, as [`Self::restart_pause`] says; after
    /// [so many failures](Self::give_up_after) the duty stays on its version. The duty also stays if
    /// preparing has not ended in time three times, on whichever node: within the
    /// [time that a start has](Self::acknowledge_timeout), then within two, then within four times that.
    #[must_use]
    pub fn prepare<F, Fut>(mut self, prepare: F) -> Self
    where
        F: Fn(Upcoming) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = WorkResult> + Send + 'static,
    {
        self.profile.prepares = true;
        self.prepare = Some(Arc::new(move |upcoming| Box::pin(prepare(upcoming))));
        self
    }

    /// How the version of this node is tried while older ones are there: how many duties move to it
    /// before the rest, and for how long they must be well. An operator's setting takes precedence
    /// ([`Cluster::set_canary`](crate::Cluster::set_canary)).
    #[must_use]
    pub fn canary(mut self, canary: Canary) -> Self {
        self.profile.canary = Some(canary);
        self
    }

    /// How many duties of the family this node may run (any number).
    #[must_use]
    pub fn max_per_node(mut self, duties: u32) -> Self {
        self.profile.max_per_node = Some(duties);
        self
    }

    /// How long a duty may take to start (30 s) before it is placed elsewhere. The news of its start
    /// may take four beats to reach the leader, so the move takes that much longer. At first,
    /// [preparing](Self::prepare) for it may take as long.
    #[must_use]
    pub fn acknowledge_timeout(mut self, timeout: Duration) -> Self {
        self.profile.acknowledge_ms = millis(timeout);
        self
    }

    /// How long a duty that is told to stop may take (30 s) before it is aborted.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.profile.grace_ms = millis(grace);
        self
    }

    /// What happens when a duty still runs after its grace period although it was aborted:
    /// blocking work, or a task that never yields ([`Overdue::Wait`]).
    #[must_use]
    pub fn on_overdue(mut self, overdue: Overdue) -> Self {
        self.profile.overdue = overdue;
        self
    }

    /// A duty counts as started only when it says [`Duty::ready`], instead of when it is first
    /// polled.
    #[must_use]
    pub fn waits_for_ready(mut self) -> Self {
        self.waits_for_ready = true;
        self
    }

    /// What follows when a duty says `Ok` ([`OnDone::StayDown`]).
    #[must_use]
    pub fn on_done(mut self, done: OnDone) -> Self {
        self.restart.done = done;
        self
    }

    /// The pause after a first failure (1 s), which doubles up to the longest (60 s). A duty that
    /// ran for longer than the longest pause starts counting anew.
    #[must_use]
    pub fn restart_pause(mut self, first: Duration, longest: Duration) -> Self {
        self.restart.first = first;
        self.restart.longest = longest.max(first);
        self
    }

    /// After how many failures in a row (3) another node tries.
    #[must_use]
    pub fn give_up_after(mut self, failures: u32) -> Self {
        self.restart.give_up = failures.max(1);
        self
    }

    /// What to do about a duty that can't be aborted and still runs when trust is over.
    #[must_use]
    pub fn on_overrun(mut self, overrun: Overrun) -> Self {
        self.overrun = overrun;
        self
    }

    /// Promises that a duty reports progress at least this often, from its start on: by
    /// [`Term::progressed`](crate::Term::progressed) or [`Duty::progress`]. After a silence of that length it is
    /// ended and counts as failed. So it is started again, and elsewhere after
    /// [so many failures](Self::give_up_after). If it blocks, another node tries at once.
    #[must_use]
    pub fn watchdog(mut self, patience: Duration) -> Self {
        self.watchdog = Some(patience);
        self
    }

    /// How one duty is run, as a task of the tokio runtime on which the node joined.
    pub fn run<F, Fut>(self, work: F) -> FamilyWork
    where
        F: Fn(Duty) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = WorkResult> + Send + 'static,
    {
        let job: MakeJob = Box::new(move |workers| Box::new(AsyncJob::new(work, workers)));
        FamilyWork { family: self, job }
    }

    /// As [`Self::run`], for work that needs state of the application's. Each time a duty is
    /// started, it gets a clone. [`Node::lead_with`](crate::Node::lead_with) says why.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use incumbent::family;
    /// # struct Ledger;
    /// # impl Ledger { async fn project(&self, _: &str) -> Result<(), std::io::Error> { Ok(()) } }
    /// # let ledger = Arc::new(Ledger);
    /// let projections = family("projection").duties(["orders", "invoices"]).run_with(
    ///     ledger,
    ///     |ledger, duty| async move {
    ///         ledger.project(duty.name()).await?;
    ///         Ok(())
    ///     },
    /// );
    /// # drop(projections);
    /// ```
    pub fn run_with<S, F, Fut>(self, state: S, work: F) -> FamilyWork
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S, Duty) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = WorkResult> + Send + 'static,
    {
        self.run(move |duty| work(state.clone(), duty))
    }

    /// How one duty is run if it blocks: on a thread of its own.
    ///
    /// Such work can't be aborted, so let it ask [`Term::is_held`](crate::Term::is_held) often enough. As long as it
    /// runs, its lease isn't freed, and [`Self::on_overdue`] says what happens then. If trust
    /// is over as well, others take the lease when it has run out. Then only a fence protects, or
    /// [`Overrun::AbortProcess`].
    pub fn run_blocking<F>(self, work: F) -> FamilyWork
    where
        F: Fn(Duty) -> WorkResult + Send + Sync + 'static,
    {
        let job: MakeJob = Box::new(move |_| Box::new(BlockingJob::new(work)));
        FamilyWork { family: self, job }
    }
}

impl FamilyWork {
    pub(super) fn name(&self) -> &str {
        &self.family.name
    }

    /// What runs the duties, where they come from, and how often they are computed.
    pub(super) fn set_up(
        self,
        workers: Handle,
        margin: Duration,
    ) -> (FamilyRuntime, List, Duration) {
        let Self { family, job } = self;
        let prepare = family.prepare.map(|hook| Prepare::new(hook, workers.clone()));
        let runner = Runner {
            job: job(workers),
            grace: Duration::from_millis(family.profile.grace_ms),
            margin,
            overrun: family.overrun,
            overdue: Some(family.profile.overdue),
            watchdog: family.watchdog,
        };
        let runtime = FamilyRuntime {
            name: family.name,
            profile: family.profile,
            runner,
            prepare,
            waits_for_ready: family.waits_for_ready,
            restart: family.restart,
            parts: std::sync::Mutex::default(),
            running: watch::Sender::new(0),
        };
        (runtime, family.list, family.refresh)
    }
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family")
            .field("name", &self.name)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FamilyWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FamilyWork").field(&self.family).finish()
    }
}

pub(super) fn specs<L>(duties: L) -> Vec<DutySpec>
where
    L: IntoIterator,
    L::Item: Into<DutyDescription>,
{
    duties.into_iter().map(|duty| duty.into().0).collect()
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
