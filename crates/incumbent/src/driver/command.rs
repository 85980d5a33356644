//! What handles ask of a node's driver.

use std::sync::Arc;
use std::time::Duration;

use incumbent_core::records::Profile;
use incumbent_core::{LeaseName, MemberId, Moment, Past, Stance};
use incumbent_duties::records::DutySpec;
use incumbent_duties::{DutyId, DutyStatus, Planned, PlanningId};
use tokio::sync::{mpsc, oneshot};

use crate::duty::FamilyRuntime;
use crate::error::LeaveError;
use crate::lead::attempt::AttemptOutcome;
use crate::lead::seat::Seat;
use crate::node::event::Notice;

#[derive(Debug)]
pub(crate) enum Command {
    /// Stand for a lease.
    Campaign { seat: Arc<Seat>, candidacy: Stance, grace: Duration },
    /// Say how one attempt went: at this moment at the latest.
    Attempt { lease: LeaseName, deadline: Moment, answer: oneshot::Sender<AttemptOutcome> },
    /// Stop standing for the lease of this seat, unless a newer campaign for it is under way.
    Withdraw(Arc<Seat>),
    /// The work under a term has ended.
    Stopped { lease: LeaseName, term: u64, abstain: Option<Duration> },
    /// Give up a term.
    Resign { lease: LeaseName, term: u64, successor: Option<MemberId> },
    /// Say when the lease of a term that ends has been freed.
    Freed { lease: LeaseName, term: u64, answer: oneshot::Sender<()> },
    /// Ask the store whether a term is held.
    Confirm { lease: LeaseName, term: u64, answer: oneshot::Sender<Option<bool>> },
    /// Serve a family, or know other duties of it.
    Serve { family: Arc<FamilyRuntime>, duties: Vec<DutySpec> },
    /// Serve a family no more.
    Unserve { family: String },
    /// How a duty gets on that was elected here.
    Status { duty: DutyId, term: u64, status: DutyStatus },
    /// What a duty is at.
    Progress { duty: DutyId, term: u64, text: String },
    /// How preparing for a duty ended.
    Prepared { duty: DutyId, result: Result<(), String> },
    /// What this node has to do beside its duties.
    Load(u64),
    /// What a member says about itself that holds what is waited for.
    Met { member: MemberId, profile: Box<Profile> },
    /// A witness has proven that nothing of a member runs any more.
    Dead { member: MemberId },
    /// Tell all that happens from now on.
    Subscribe(mpsc::Sender<Notice>),
    /// A plan was made, or could not be.
    Planned { id: PlanningId, result: Box<Result<Planned, String>> },
    /// Say what this node has seen.
    Past(oneshot::Sender<Past>),
    /// Leave in order.
    Leave(oneshot::Sender<Result<(), LeaveError>>),
    /// Nobody has a handle to the node any more: leave, and tell nobody.
    Abandon,
}

/// The way to a driver. It stays open after the driver has ended; then nothing happens.
#[derive(Clone, Debug)]
pub(crate) struct Commands(mpsc::UnboundedSender<Command>);

impl Commands {
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<Command>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Whether the driver will ever see it is not said: if it has ended, so has all that a
    /// command could change.
    pub(crate) fn send(&self, command: Command) {
        let _ = self.0.send(command);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Ready once the driver has ended.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}
