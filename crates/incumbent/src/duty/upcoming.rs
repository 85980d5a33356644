//! What a node does before a duty changes over to it from another version.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use incumbent_duties::DutyId;
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::FamilyRuntime;
use crate::driver::command::{Command, Commands};
use crate::driver::foreign::Foreign;
use crate::driver::{clock, panic, thread, workers};
use crate::error::WorkResult;
use crate::lead::failures::Failures;

/// A duty that runs elsewhere, on another version, and changes over to this node once it is
/// [prepared](super::Family::prepare) for it.
#[derive(Clone)]
pub struct Upcoming {
    id: DutyId,
    parts: Arc<[String]>,
}

impl Upcoming {
    /// Its id: `family/name`.
    #[must_use]
    pub fn id(&self) -> &DutyId {
        &self.id
    }

    /// Its name within the family.
    #[must_use]
    pub fn name(&self) -> &str {
        self.id.name()
    }

    /// What it is made of, as [`Duty::parts`](super::Duty::parts) says.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
    }
}

impl fmt::Debug for Upcoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upcoming").field("id", &self.id).finish_non_exhaustive()
    }
}

type Prepared = Pin<Box<dyn Future<Output = WorkResult> + Send>>;
pub(super) type Hook = Arc<dyn Fn(Upcoming) -> Prepared + Send + Sync>;

/// How a family prepares, on the application's runtime.
pub(crate) struct Prepare {
    hook: Foreign<Hook>,
    workers: Handle,
}

impl Prepare {
    pub(super) fn new(hook: Hook, workers: Handle) -> Self {
        Self { hook: Foreign::new(hook), workers }
    }

    async fn run(&self, upcoming: Upcoming, stop: &CancellationToken) -> Result<(), String> {
        let Some(hook) = self.hook.as_ref().cloned() else { return Ok(()) };
        // What the application throws or returns stays on its side: only text comes back.
        let mut task = workers::spawn(&self.workers, async move {
            let preparing = pin!(async move { hook(upcoming).await.map_err(panic::shown) });
            let prepared = panic::contained(preparing).await;
            prepared.unwrap_or_else(|said| Err(format!("it panicked: {said}")))
        });
        tokio::select! {
            biased;
            ended = &mut task => ended.unwrap_or_else(|error| Err(interrupted(error))),
            () = stop.cancelled() => {
                task.abort();
                Ok(())
            }
        }
    }
}

/// The task did not come to its end: a value of its future panicked in `Drop`, or its runtime is gone.
fn interrupted(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("it panicked: {}", panic::text(panic)),
        Err(_) => "the runtime on which it is prepared was shut down".to_owned(),
    }
}

/// Prepares for one duty, on the thread of the runners, until that is done or not wanted any more.
pub(crate) struct Preparing {
    pub(crate) family: Arc<FamilyRuntime>,
    pub(crate) duty: DutyId,
    pub(crate) commands: Commands,
    pub(crate) stop: CancellationToken,
}

impl Preparing {
    pub(crate) async fn run(self) {
        let restart = self.family.restart;
        let mut failures = Failures::new(restart.first, restart.longest);
        loop {
            let result = match &self.family.prepare {
                Some(prepare) => {
                    let parts = self.family.parts_of(self.duty.name());
                    let upcoming = Upcoming { id: self.duty.clone(), parts };
                    prepare.run(upcoming, &self.stop).await
                }
                None => Ok(()),
            };
            if self.stop.is_cancelled() {
                return;
            }
            let Err(error) = result else {
                return self.tell(Ok(()));
            };
            let (times, pause) = failures.another();
            tracing::error!(duty = %self.duty, action = "prepare", error, failures = times, ?pause, "preparing for a duty failed; the duty goes on where it is");
            if times >= restart.give_up {
                return self.tell(Err(error));
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = thread::sleep_until(clock::now() + pause) => {}
            }
        }
    }

    fn tell(&self, result: Result<(), String>) {
        self.commands.send(Command::Prepared { duty: self.duty.clone(), result });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct TellsThread(mpsc::Sender<Option<String>>);

    impl Drop for TellsThread {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().name().map(str::to_owned));
        }
    }

    #[test]
    fn o3_a_hook_is_dropped_elsewhere_even_if_its_runtime_is_gone() {
        let (sender, names) = mpsc::channel();
        let captured = TellsThread(sender);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let hook: Hook = Arc::new(move |_| {
            let _captured = &captured;
            Box::pin(async { Ok(()) })
        });
        let prepare = Prepare::new(hook, runtime.handle().clone());
        drop(runtime);
        thread::spawn(async move { drop(prepare) }).unwrap();
        assert_eq!(names.recv().unwrap().as_deref(), Some("incumbent-drop"));
    }
}
