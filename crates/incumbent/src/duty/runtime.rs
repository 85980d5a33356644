//! How a node runs the duties of one family.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use incumbent_core::records::FamilyProfile;
use incumbent_duties::records::DutySpec;
use tokio::sync::watch;

use super::upcoming::Prepare;
use super::{Duty, OnDone};
use crate::lead::Runner;

/// Made once by [`Node::serve`](crate::Node::serve), shared by all runs.
pub(crate) struct FamilyRuntime {
    pub(crate) name: String,
    pub(crate) profile: FamilyProfile,
    pub(crate) runner: Runner<Duty>,
    /// What is done before a duty changes over to this node.
    pub(crate) prepare: Option<Prepare>,
    pub(crate) waits_for_ready: bool,
    pub(crate) restart: Restart,
    /// What composite duties are made of, as this node's list says.
    pub(crate) parts: Mutex<HashMap<String, Arc<[String]>>>,
    /// How many duties of the family this node has now.
    pub(crate) running: watch::Sender<usize>,
}

/// What happens to a duty that ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restart {
    pub(crate) done: OnDone,
    /// The first pause after a failure, and the longest.
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
    /// So many failures in a row make another node try.
    pub(crate) give_up: u32,
}

impl FamilyRuntime {
    /// Takes in what a new list says of composite duties.
    pub(crate) fn compose<'a>(&self, duties: impl IntoIterator<Item = &'a DutySpec>) {
        let composite = duties.into_iter().filter(|duty| !duty.parts.is_empty());
        let parts = composite.map(|duty| (duty.name.clone(), duty.parts.clone().into()));
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts.collect();
    }

    /// What a duty is made of.
    pub(crate) fn parts_of(&self, name: &str) -> Arc<[String]> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.get(name).cloned().unwrap_or_default()
    }
}

impl std::fmt::Debug for FamilyRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FamilyRuntime").field("name", &self.name).finish_non_exhaustive()
    }
}
