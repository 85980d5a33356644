use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::{LeaseName, MemberId, Moment};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::driver::clock;
use crate::driver::command::{Command, Commands};
use crate::error::{ClusterError, Unanswered};
use crate::lead::fence::Fence;
use crate::lead::loss::Lost;
use crate::lead::scope::{Guarded, Scope};
use crate::lead::tenure::Tenure;

/// One term of leadership, as the work under it sees it. Clones speak of the same term; they
/// don't keep it alive.
#[derive(Clone)]
pub struct Term {
    pub(crate) tenure: Arc<Tenure>,
    pub(crate) commands: Commands,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) scope: Scope,
}

impl Term {
    /// Whether this node leads now.
    ///
    /// Reads two atomics and the clock: no lock, no allocation, no store (F26). A process that
    /// was paused finds out at its first question, whatever its timers did. Once the answer is
    /// no, it stays no.
    #[must_use]
    #[inline]
    pub fn is_held(&self) -> bool {
        self.tenure.is_held()
    }

    /// The lease that is led.
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        &self.tenure.lease
    }

    /// The member that leads.
    #[must_use]
    pub fn member(&self) -> &MemberId {
        &self.tenure.member
    }

    /// The number of the term. It grows by one each time the lease changes hands.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.tenure.term
    }

    /// The term as a fencing token, to be handed to all that the work writes to.
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence::new(self.tenure.term)
    }

    /// Until when this node may believe that it leads, unless another beat gets through first.
    /// Work that was told to end in order may go on ending until then.
    #[must_use]
    pub fn trusted_until(&self) -> Moment {
        self.tenure.until()
    }

    /// Waits until [`Self::trusted_until`] differs from the moment that the caller knows, and returns the
    /// new one: each beat that gets through puts it off. [`Moment::START`] is the last; after it there is
    /// nothing more to wait for. For programs that tell others until when they may work. Cancel-safe.
    pub async fn trust_changed(&self, known: Moment) -> Moment {
        self.tenure.other_until(known).await
    }

    /// How long it is to [`Self::trusted_until`]; zero once that has passed.
    #[must_use]
    pub fn trust_left(&self) -> Duration {
        self.trusted_until().since(clock::now())
    }

    /// Puts a future under the term. Like the work of [`Node::lead`](crate::Node::lead), it takes no step
    /// once trust is over, and the lease isn't freed before it is gone. For tasks that the work spawns,
    /// and that nobody else knows of:
    ///
    /// ```
    /// # async fn work(term: incumbent::Term) -> incumbent::WorkResult {
    /// # async fn export(_: incumbent::Fence) {}
    /// let exporting = tokio::spawn(term.guard(export(term.fence())));
    /// # exporting.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It goes on as long as the work does, even while the work ends in order. It is dropped at an
    /// `await` when trust is over, when the work has ended or is aborted, or when the
    /// [`Leadership`](crate::Leadership) is dropped. Then it returns nothing. A call that
    /// blocks can't be interrupted, and keeps the lease until it returns.
    pub fn guard<F: Future>(&self, future: F) -> Guarded<F> {
        self.scope.guard(future)
    }

    /// Reports progress of the work, where a [watchdog](crate::Candidacy::watchdog) waits for that. It is
    /// one atomic write: call it as often as you like.
    pub fn progressed(&self) {
        self.tenure.progressed();
    }

    /// Fires when the work under the term must end. If you cancel it yourself, you end only what you
    /// made depend on it.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.tenure.token()
    }

    /// Waits for the end of the term, and says why it ended. Cancel-safe.
    pub async fn lost(&self) -> Lost {
        self.tenure.ended().await
    }

    /// How the term ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<Lost> {
        self.tenure.lost()
    }

    /// Asks the store whether the term is held, instead of trusting. Another holder's name there
    /// ends the term at once (F12).
    ///
    /// A yes was true when the store answered. Only a fence can make sure that it is still true
    /// when a write arrives elsewhere. Cancel-safe: a question that nobody waits for harms nobody.
    ///
    /// # Errors
    /// If the store didn't answer within the request time-out. Trust is as it was.
    pub async fn confirm(&self) -> Result<bool, Unanswered> {
        if !self.is_held() {
            return Ok(false);
        }
        let (answer, answered) = oneshot::channel();
        let (lease, term) = (self.tenure.lease.clone(), self.tenure.term);
        self.commands.send(Command::Confirm { lease, term, answer });
        match answered.await {
            Ok(Some(held)) => Ok(held && self.is_held()),
            Ok(None) => Err(Unanswered),
            // The driver has ended, and with it all terms.
            Err(_) => Ok(false),
        }
    }

    /// Gives the lease up: the token fires, and the lease is freed when the work under it has
    /// ended. The node stands back for a while, so that somebody else can win (F30).
    pub fn resign(&self) {
        self.hand_over(None);
    }

    /// Gives the lease up in favour of the node of this name, or the member of this id: others
    /// hold back for it, but not for long. As [`Self::resign`] otherwise.
    ///
    /// Cancel-safe: dropped before it is ready, it has changed nothing.
    ///
    /// # Errors
    /// If no live member is called that, or several are (F2). Then nothing was changed.
    pub async fn transfer(&self, node: &str) -> Result<(), ClusterError> {
        let successor = self.cluster.live_member(node).await?;
        self.hand_over(Some(successor));
        Ok(())
    }

    /// A handle for another run of the work under the same term.
    pub(crate) fn anew(&self) -> Self {
        Self { scope: self.scope.anew(), ..self.clone() }
    }

    fn hand_over(&self, successor: Option<MemberId>) {
        let (lease, term) = (self.tenure.lease.clone(), self.tenure.term);
        self.commands.send(Command::Resign { lease, term, successor });
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("lease", &self.tenure.lease)
            .field("term", &self.tenure.term)
            .field("lost", &self.tenure.lost())
            .finish_non_exhaustive()
    }
}
