use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::driver::command::{Command, Commands};
use crate::error::{ClusterError, Unfreed};
use crate::lead::campaign::Campaign;
use crate::lead::hold::Hold;
use crate::lead::scope::Scope;
use crate::lead::slots::Release;
use crate::lead::term::Term;
use crate::node::Keep;

/// A lease that this node holds. Dropping it says that the work under it has ended, and frees the
/// lease.
///
/// The [`Term`] that it derefs to answers all questions, and its clones can be handed
/// around. When [`Term::lost`] is ready or [`Term::token`] fires, end the work and drop this. As
/// long as it exists, its work counts as running, and this node isn't elected again.
#[derive(Debug)]
#[must_use = "dropping it frees the lease"]
pub struct Leadership {
    // The order matters: what runs under the term is told to end, the work has ended, and then its
    // campaign is withdrawn.
    closing: Closing,
    hold: Arc<Hold>,
    campaign: Option<Campaign>,
    term: Term,
    _keep: Option<Keep>,
    _release: Option<Release>,
}

impl Leadership {
    pub(crate) fn new(
        hold: Arc<Hold>,
        commands: Commands,
        cluster: Arc<Cluster>,
        keep: Option<Keep>,
    ) -> Self {
        let scope = Scope::new(&hold.tenure, Arc::downgrade(&hold));
        let term = Term { tenure: Arc::clone(&hold.tenure), commands, cluster, scope };
        let closing = Closing(term.scope.clone());
        Self { closing, hold, campaign: None, term, _keep: keep, _release: None }
    }

    /// Ends the campaign together with this.
    pub(crate) fn with_campaign(mut self, campaign: Campaign) -> Self {
        self.campaign = Some(campaign);
        self
    }

    /// Lets somebody know when all of this is gone.
    pub(crate) fn with_release(mut self, release: Release) -> Self {
        self._release = Some(release);
        self
    }

    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// A handle to the same term for those who only ask.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term.clone()
    }

    /// Frees the lease and waits until the store has confirmed it.
    ///
    /// Dropped before it is ready, it frees the lease all the same.
    ///
    /// # Errors
    /// If the store didn't confirm it in time. The lease is given up in any case, and trusted no
    /// more; it is free when the store is back, or when the member's ttl has passed.
    pub async fn release(self) -> Result<(), Unfreed> {
        let term = self.term.clone();
        term.resign();
        // Asked before the lease can be freed, so that the answer isn't missed.
        let freed = freed(&term);
        drop((self.closing, self.hold));
        freed.await.map_err(|_| Unfreed)
    }

    /// Frees the lease in favour of the node of this name, or the member of this id.
    ///
    /// Dropped before it is ready, it frees the lease all the same.
    ///
    /// # Errors
    /// If no live member is called that, or several are (F2): then this leadership comes back
    /// with the error, and nothing was changed.
    pub async fn release_to(self, node: &str) -> Result<(), (Self, ClusterError)> {
        if let Err(error) = self.term.transfer(node).await {
            return Err((self, error));
        }
        let term = self.term.clone();
        let freed = freed(&term);
        drop((self.closing, self.hold));
        // Given up in any case; whether the store said so in time is no matter to the caller.
        let _ = freed.await;
        Ok(())
    }
}

/// Ends what runs under the term together with the leadership.
#[derive(Debug)]
struct Closing(Scope);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Says when the lease of a term that ends has been freed, or that this won't be known.
pub(crate) fn freed(term: &Term) -> oneshot::Receiver<()> {
    let (answer, answered) = oneshot::channel();
    let (lease, number) = (term.tenure.lease.clone(), term.tenure.term);
    term.commands.send(Command::Freed { lease, term: number, answer });
    answered
}

impl Deref for Leadership {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.term
    }
}
