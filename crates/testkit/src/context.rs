use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use incumbent_core::store::{Capabilities, Store};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::locked::locked;
use crate::{FaultyStore, Handle, Opener, Rng, Violation};

/// What a property is given: the store under test, opened as often as it likes, scratch clusters
/// that nobody else uses, and a seeded generator.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
}

/// What one run of the kit decides for all its properties.
pub(crate) struct Setting {
    pub(crate) opener: Arc<dyn Opener>,
    pub(crate) capabilities: Capabilities,
    pub(crate) saboteur: Option<FaultyStore>,
    pub(crate) rounds: usize,
}

struct Shared {
    setting: Arc<Setting>,
    cluster: String,
    scratch: Mutex<BTreeSet<String>>,
    rng: Mutex<Rng>,
    errors: AtomicU64,
}

impl Context {
    pub(crate) fn new(setting: Arc<Setting>, cluster: String, rng: Rng) -> Self {
        let scratch = Mutex::new(BTreeSet::from([cluster.clone()]));
        let (rng, errors) = (Mutex::new(rng), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { setting, cluster, scratch, rng, errors }) }
    }

    /// An independent handle, behind faults if the run has any.
    pub async fn open(&self) -> Result<Handle, Violation> {
        let store = self.opened().await?;
        Ok(match &self.shared.setting.saboteur {
            Some(saboteur) => self.handle(Arc::new(saboteur.beside(store))),
            None => self.handle(store),
        })
    }

    /// An independent handle without faults, to see what really is in the store.
    pub async fn open_clean(&self) -> Result<Handle, Violation> {
        Ok(self.handle(self.opened().await?))
    }

    /// Several independent handles, behind faults if the run has any.
    pub async fn open_many(&self, count: usize) -> Result<Vec<Handle>, Violation> {
        let mut handles = Vec::with_capacity(count);
        for _ in 0..count {
            handles.push(self.open().await?);
        }
        Ok(handles)
    }

    /// What the store says about itself.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.shared.setting.capabilities
    }

    /// How often something that depends on luck should be tried.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.shared.setting.rounds
    }

    /// Whether the handles are behind faults.
    #[must_use]
    pub fn faulty(&self) -> bool {
        self.shared.setting.saboteur.is_some()
    }

    /// A generator of its own for each caller.
    #[must_use]
    pub fn rng(&self) -> Rng {
        locked(&self.shared.rng).fork()
    }

    /// Another scratch cluster: this property's own, followed by `suffix`.
    #[must_use]
    pub fn scratch(&self, suffix: &str) -> String {
        let name = format!("{}{suffix}", self.shared.cluster);
        locked(&self.shared.scratch).insert(name.clone());
        name
    }

    /// Waits until nothing injected is still under way.
    pub async fn quiet(&self) {
        if let Some(saboteur) = &self.shared.setting.saboteur {
            saboteur.quiet().await;
        }
    }

    /// Asks the opener to break the connections.
    pub async fn disturb(&self) -> bool {
        self.shared.setting.opener.disturb().await
    }

    /// Runs all of these at once, started together, and answers in their order.
    pub async fn race<T, F>(&self, runners: Vec<F>) -> Result<Vec<T>, Violation>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Violation>> + Send + 'static,
    {
        let start = Arc::new(Barrier::new(runners.len()));
        let mut tasks = JoinSet::new();
        for (place, runner) in runners.into_iter().enumerate() {
            let start = Arc::clone(&start);
            tasks.spawn(async move {
                start.wait().await;
                (place, runner.await)
            });
        }
        let mut ended = Vec::new();
        while let Some(task) = tasks.join_next().await {
            let (place, end) = task.map_err(|error| Violation::new(format!("panic: {error}")))?;
            ended.push((place, end?));
        }
        ended.sort_by_key(|(place, _)| *place);
        Ok(ended.into_iter().map(|(_, end)| end).collect())
    }

    pub(crate) fn count_error(&self) {
        self.shared.errors.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn errors(&self) -> u64 {
        self.shared.errors.load(Ordering::SeqCst)
    }

    /// Deletes all that the property left, as well as that goes.
    pub(crate) async fn tidy(&self) {
        self.quiet().await;
        let clusters = std::mem::take(&mut *locked(&self.shared.scratch));
        let Ok(handle) = self.open_clean().await else { return };
        for cluster in clusters {
            handle.within(&cluster).wipe().await;
        }
    }

    async fn opened(&self) -> Result<Arc<dyn Store>, Violation> {
        let opening = self.shared.setting.opener.open().await;
        opening.map_err(|error| Violation::failure("opening the store", &error))
    }

    fn handle(&self, store: Arc<dyn Store>) -> Handle {
        Handle::new(self.clone(), store, &self.shared.cluster)
    }
}
