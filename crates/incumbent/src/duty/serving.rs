use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use incumbent_core::names::NameError;
use incumbent_duties::duty::check_family;
use tokio_util::sync::CancellationToken;

use super::DutyDescription;
use super::family::{FamilyWork, List, specs};
use super::list::{self, Computing, DutyList};
use crate::driver::foreign::Foreign;
use crate::driver::thread;
use crate::error::ServeError;
use crate::node::{Keep, Node};

/// The families that a node serves, so that it serves each once.
#[derive(Debug, Default)]
pub(crate) struct Families(Mutex<BTreeSet<String>>);

impl Families {
    fn claim(&self, family: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(family.to_owned())
    }

    fn release(&self, family: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(family);
    }
}

/// A family that a node serves, made by [`Node::serve`].
///
/// Dropping it changes nothing: the family is served for as long as the node lives.
pub struct Serving {
    list: Arc<DutyList>,
    stop: CancellationToken,
    keep: Keep,
}

impl Serving {
    /// The family.
    #[must_use]
    pub fn family(&self) -> &str {
        &self.list.family.name
    }

    /// Adds a duty to the list of this node, or describes it anew. Where the list is
    /// [computed](super::Family::duties_with), the next computation replaces it.
    ///
    /// # Errors
    /// If its name is not valid. Then nothing was changed.
    pub fn add(&self, duty: impl Into<DutyDescription>) -> Result<(), NameError> {
        let duty = duty.into().0;
        self.list.check(std::slice::from_ref(&duty))?;
        self.list.change(|duties| {
            duties.insert(duty.name.clone(), duty);
        });
        Ok(())
    }

    /// Removes a duty from the list of this node. It is stopped wherever it runs, unless another
    /// live node lists it too. A name that isn't listed changes nothing.
    pub fn remove(&self, name: &str) {
        self.list.change(|duties| {
            duties.remove(name);
        });
    }

    /// Replaces the list of this node.
    ///
    /// # Errors
    /// If a name is not valid. Then nothing was changed.
    pub fn replace<L>(&self, duties: L) -> Result<(), NameError>
    where
        L: IntoIterator,
        L::Item: Into<DutyDescription>,
    {
        let duties = specs(duties);
        self.list.check(&duties)?;
        self.list.replace(duties);
        Ok(())
    }

    /// The names of the duties that this node lists, in order.
    #[must_use]
    pub fn duties(&self) -> Vec<String> {
        self.list.names()
    }

    /// How many duties of the family this node has now, those that start, fail or stop included.
    #[must_use]
    pub fn running(&self) -> usize {
        *self.list.family.running.borrow()
    }

    /// Serves the family no more: the leader takes its duties away from this node, and they stop
    /// in order. Ready when none runs here any more.
    ///
    /// Dropped before it is ready, the family is served no more all the same.
    ///
    /// There must be a leader for that: it may take a ttl if that one has just been lost.
    pub async fn stop(&self) {
        self.stop.cancel();
        // Once only: by the next time the family may be served anew.
        if self.list.close() {
            self.keep.families.release(self.family());
        }
        let mut running = self.list.family.running.subscribe();
        // The sender is in here, so that this can't fail.
        let _ = running.wait_for(|running| *running == 0).await;
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving")
            .field("family", &self.family())
            .field("running", &self.running())
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Serves a family: from now on the cluster's leader may ask this node to run its duties, and
    /// places all that this node lists on the nodes that can run them. Each runs on one node at a
    /// time: only the holder of a duty's lease runs it.
    ///
    /// Duties run on the tokio runtime on which the node joined. [`Family`](super::Family) says
    /// how they start, end and stop.
    ///
    /// # Errors
    /// If a name is not valid, the node serves the family already, it joined without
    /// [membership](crate::Builder::without_membership), or it has left.
    pub fn serve(&self, family: FamilyWork) -> Result<Serving, ServeError> {
        #[cfg(feature = "testing")]
        let _home = self.inner.home.enter();
        let name = family.name().to_owned();
        check_family(&name)?;
        if !self.inner.membership {
            return Err(ServeError::NoMembership { family: name });
        }
        if self.inner.commands.is_closed() {
            return Err(ServeError::Left);
        }
        let (workers, margin) = (self.inner.workers.clone(), self.inner.timing.margin);
        let (runtime, duties, refresh) = family.set_up(workers.clone(), margin);
        let (duties, compute) = match duties {
            List::Fixed(duties) => (duties, None),
            List::Computed(compute) => (Vec::new(), Some(compute)),
        };
        list::check(&name, &duties)?;
        if !self.inner.families.claim(&name) {
            return Err(ServeError::Duplicate { family: name });
        }
        let list = DutyList::new(Arc::new(runtime), self.inner.commands.clone(), duties);
        let (list, stop) = (Arc::new(list), CancellationToken::new());
        list.serve();
        if let Some(compute) = compute {
            let (list, stop) = (Arc::clone(&list), stop.clone());
            let compute = Foreign::new(compute);
            let computing = Computing { list, compute, refresh, workers, stop };
            thread::spawn_runner(computing.run())
                .map_err(|error| ServeError::Thread(error.to_string()))?;
        }
        Ok(Serving { list, stop, keep: Arc::clone(&self.inner) })
    }

    /// Says how much this node has to do beside its duties, in the unit of their weights. Placing
    /// takes it into account from the next report on; it drives away nothing that runs.
    pub fn tell_load(&self, load: u64) {
        self.inner.commands.send(crate::driver::command::Command::Load(load));
    }
}
