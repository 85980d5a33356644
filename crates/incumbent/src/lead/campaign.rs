use std::sync::Arc;

use incumbent_core::LeaseName;

use crate::cluster::Cluster;
use crate::driver::command::{Command, Commands};
use crate::error::Closed;
use crate::lead::hold::Hold;
use crate::lead::leadership::Leadership;
use crate::lead::seat::{Seat, Seats};
use crate::node::Keep;

/// A node that stands for a lease. It contends until it is elected, and again after each loss.
/// Dropping the campaign withdraws it.
#[derive(Debug)]
#[must_use = "dropping it withdraws the candidacy"]
pub struct Campaign {
    pub(crate) commands: Commands,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) seat: Arc<Seat>,
    pub(crate) keep: Option<Keep>,
}

impl Campaign {
    /// The lease that the node stands for.
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        &self.seat.lease
    }

    /// Waits until this node leads.
    ///
    /// Cancel-safe: a leadership that was won is kept for the next call, as long as it lasts.
    /// The campaign goes on either way; to stop contending, drop it. What was won by then, or is
    /// won by a request still on its way, is given back (F18).
    ///
    /// # Errors
    /// If the node has left.
    pub async fn elected(&mut self) -> Result<Leadership, Closed> {
        let hold = self.seat.claim().await?;
        Ok(self.leadership(hold))
    }

    /// The leadership that was won and not claimed yet, without waiting.
    pub(crate) fn unclaimed(&self) -> Option<Leadership> {
        self.seat.take().map(|hold| self.leadership(hold))
    }

    fn leadership(&self, hold: Arc<Hold>) -> Leadership {
        Leadership::new(hold, self.commands.clone(), Arc::clone(&self.cluster), self.keep.clone())
    }

    /// Stops standing for the lease: what is held is told to stop, and no more is taken.
    pub(crate) fn withdraw(&self) {
        self.commands.send(Command::Withdraw(Arc::clone(&self.seat)));
    }
}

impl Drop for Campaign {
    fn drop(&mut self) {
        self.withdraw();
        // Only now, so that the next campaign for the lease comes after this one's end.
        self.seats.give_back(&self.seat);
    }
}
