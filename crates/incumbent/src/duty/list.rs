//! The duties of a family as this node knows them, and computing them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use incumbent_core::names::NameError;
use incumbent_duties::DutyId;
use incumbent_duties::records::DutySpec;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::FamilyRuntime;
use super::family::Compute;
use crate::driver::command::{Command, Commands};
use crate::driver::foreign::{Foreign, drop_elsewhere};
use crate::driver::{clock, panic, thread, workers};
use crate::error::BoxError;
use crate::lead::failures::Failures;

/// The list, which is told to the node whenever it changes.
pub(super) struct DutyList {
    pub(super) family: Arc<FamilyRuntime>,
    commands: Commands,
    /// Nothing once the family isn't served any more.
    duties: Mutex<Option<BTreeMap<String, DutySpec>>>,
}

impl DutyList {
    pub(super) fn new(
        family: Arc<FamilyRuntime>,
        commands: Commands,
        duties: Vec<DutySpec>,
    ) -> Self {
        Self { family, commands, duties: Mutex::new(Some(by_name(duties))) }
    }

    /// Checks names before anything is changed.
    pub(super) fn check(&self, duties: &[DutySpec]) -> Result<(), NameError> {
        check(&self.family.name, duties)
    }

    /// Changes the list, and tells the node unless it stays the same.
    pub(super) fn change(&self, change: impl FnOnce(&mut BTreeMap<String, DutySpec>)) {
        let mut duties = self.duties.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(duties) = duties.as_mut() else { return };
        let before = duties.clone();
        change(duties);
        if *duties != before {
            self.tell(duties);
        }
    }

    pub(super) fn replace(&self, duties: Vec<DutySpec>) {
        self.change(|known| *known = by_name(duties));
    }

    /// Serves the family with the list as it is.
    pub(super) fn serve(&self) {
        let duties = self.duties.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(duties) = duties.as_ref() {
            self.tell(duties);
        }
    }

    /// Serves the family no more; says whether it was served until now.
    pub(super) fn close(&self) -> bool {
        let mut duties = self.duties.lock().unwrap_or_else(PoisonError::into_inner);
        let served = duties.take().is_some();
        if served {
            self.commands.send(Command::Unserve { family: self.family.name.clone() });
        }
        served
    }

    pub(super) fn names(&self) -> Vec<String> {
        let duties = self.duties.lock().unwrap_or_else(PoisonError::into_inner);
        duties.iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Called with the list locked, so that the node hears of changes in their order.
    fn tell(&self, duties: &BTreeMap<String, DutySpec>) {
        self.family.compose(duties.values());
        let duties = duties.values().cloned().collect();
        self.commands.send(Command::Serve { family: Arc::clone(&self.family), duties });
    }
}

pub(super) fn check(family: &str, duties: &[DutySpec]) -> Result<(), NameError> {
    duties.iter().try_for_each(|duty| DutyId::new(family, &duty.name).map(|_| ()))
}

/// Computes a list again and again, on the application's runtime.
pub(super) struct Computing {
    pub(super) list: Arc<DutyList>,
    pub(super) compute: Foreign<Compute>,
    pub(super) refresh: Duration,
    pub(super) workers: Handle,
    pub(super) stop: CancellationToken,
}

impl Computing {
    /// Runs on the thread of the runners until the family isn't served any more or the node has left.
    pub(super) async fn run(self) {
        let first = Duration::from_millis(500).min(self.refresh);
        let mut failures = Failures::new(first, self.refresh.max(first));
        while !self.list.commands.is_closed() {
            let computed = tokio::select! {
                biased;
                () = self.over() => return,
                computed = self.compute() => computed,
            };
            let pause = match computed {
                Ok(duties) => {
                    self.list.replace(duties);
                    failures.forget();
                    self.refresh
                }
                Err(error) => {
                    let (family, (_, pause)) = (&self.list.family.name, failures.another());
                    tracing::error!(family, %error, ?pause, action = "list", "the duties could not be computed; the former list stays");
                    pause
                }
            };
            tokio::select! {
                biased;
                () = self.over() => return,
                () = thread::sleep_until(clock::now() + pause) => {}
            }
        }
    }

    /// Ready once nobody wants the list any more.
    async fn over(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.list.commands.closed() => {}
        }
    }

    async fn compute(&self) -> Result<Vec<DutySpec>, BoxError> {
        let compute =
            self.compute.as_ref().cloned().ok_or("there is nothing to compute it with")?;
        // A panic in the application's code ends that task and nothing else.
        let computed = workers::spawn(&self.workers, async move {
            // What the error holds is the application's too.
            compute().await.map_err(|error| panic::chain(&*error))
        });
        let duties = match computed.await {
            Ok(computed) => computed?,
            Err(error) => {
                let said = error.to_string();
                drop_elsewhere(error);
                return Err(said.into());
            }
        };
        self.list.check(&duties)?;
        Ok(duties)
    }
}

fn by_name(duties: Vec<DutySpec>) -> BTreeMap<String, DutySpec> {
    duties.into_iter().map(|duty| (duty.name.clone(), duty)).collect()
}
