use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::context::Setting;
use crate::properties::PROPERTIES;
use crate::{Context, Faults, FaultyStore, Opener, Property, Report, Rng, Row, Verdict, Violation};

/// Tries every property on a store.
///
/// Run it on a multi-threaded runtime if you can, for races are then real ones.
pub struct Conformance {
    opener: Arc<dyn Opener>,
    faults: Option<Faults>,
    seed: u64,
    rounds: usize,
    time_limit: Duration,
    only: Option<Vec<String>>,
    progress: Box<dyn Fn(Progress<'_>) + Send + Sync>,
}

/// What is going on while the kit runs.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// This property is being tried.
    Started(&'a Property),
    /// This came of it.
    Ended(&'a Row),
}

impl Conformance {
    /// The kit for the store that this opens.
    pub fn new(opener: impl Opener) -> Self {
        Self {
            opener: Arc::new(opener),
            faults: None,
            seed: Rng::fresh_seed(),
            rounds: 40,
            time_limit: Duration::from_secs(120),
            only: None,
            progress: Box::new(|_| {}),
        }
    }

    /// Puts every handle behind these faults, and tries the properties that hold even so.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Draws from this seed, as an earlier report gave it. Otherwise each run has its own.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How often to try what depends on luck, 40 times by default.
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// How long one property may take, two minutes by default. One that takes longer has failed.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Tries these properties alone.
    #[must_use]
    pub fn only<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.only = Some(names.into_iter().map(str::to_owned).collect());
        self
    }

    /// Calls this as the kit goes on.
    #[must_use]
    pub fn on_progress(mut self, progress: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Tries one property after another. Its scratch records are deleted after each.
    pub async fn run(self) -> Report {
        let setting = match self.setting().await {
            Ok(setting) => Arc::new(setting),
            Err(violation) => return self.unopened(violation),
        };
        let mut rng = Rng::new(self.seed);
        // The seed may be an earlier run's, whose records may still be there: scratch clusters
        // are therefore named after something that differs from run to run.
        let run = Rng::fresh_seed();
        let mut rows = Vec::new();
        for property in PROPERTIES {
            let rng = rng.fork();
            if self.leaves_out(property) {
                continue;
            }
            (self.progress)(Progress::Started(property));
            let cluster = format!("conformance-{run:016x}-{}", property.name);
            let context = Context::new(Arc::clone(&setting), cluster, rng);
            let row = self.row(property, context).await;
            (self.progress)(Progress::Ended(&row));
            rows.push(row);
        }
        let faults = setting.saboteur.as_ref().map(FaultyStore::counts);
        Report { kind: setting.capabilities.kind, seed: self.seed, faults, rows }
    }

    async fn setting(&self) -> Result<Setting, Violation> {
        let opening = self.opener.open().await;
        let store = opening.map_err(|error| Violation::failure("opening the store", &error))?;
        let capabilities = store.capabilities();
        let saboteur = self.faults.clone().map(|faults| FaultyStore::new(store, faults));
        Ok(Setting {
            opener: Arc::clone(&self.opener),
            capabilities,
            saboteur,
            rounds: self.rounds,
        })
    }

    async fn row(&self, property: &Property, context: Context) -> Row {
        let verdict = match self.reason_to_skip(property, &context) {
            Some(reason) => Verdict::Skipped(reason),
            None => match contained(self.time_limit, (property.run)(context.clone())).await {
                Ok(()) => Verdict::Passed,
                Err(violation) => Verdict::Failed(violation),
            },
        };
        if !matches!(verdict, Verdict::Skipped(_)) {
            let tidying = context.clone();
            let tidied = async move {
                tidying.tidy().await;
                Ok(())
            };
            // What can't be cleaned up says nothing about the property.
            let _ = contained(Duration::from_secs(30), tidied).await;
        }
        let (property, about) = (property.name, property.about);
        Row { property, about, verdict, errors: context.errors() }
    }

    fn reason_to_skip(&self, property: &Property, context: &Context) -> Option<String> {
        if self.faults.is_some() && !property.under_faults {
            return Some("says nothing behind faults".to_owned());
        }
        property.needs.missing(context.capabilities()).map(str::to_owned)
    }

    fn leaves_out(&self, property: &Property) -> bool {
        self.only.as_ref().is_some_and(|only| !only.iter().any(|name| name == property.name))
    }

    fn unopened(&self, violation: Violation) -> Report {
        let row = Row {
            property: "opens",
            about: "The store can be opened",
            verdict: Verdict::Failed(violation),
            errors: 0,
        };
        Report { kind: "unopened store", seed: self.seed, faults: None, rows: vec![row] }
    }
}

/// Runs on a task of its own, so that neither a panic nor a hang of the store ends the kit.
async fn contained(
    limit: Duration,
    running: impl Future<Output = Result<(), Violation>> + Send + 'static,
) -> Result<(), Violation> {
    let mut task = JoinSet::new();
    task.spawn(running);
    match tokio::time::timeout(limit, task.join_next()).await {
        Ok(Some(Ok(end))) => end,
        Ok(Some(Err(error))) => Err(Violation::new(format!("the store panicked: {error}"))),
        Ok(None) => Ok(()),
        Err(_) => Err(Violation::new(format!("this did not end in {limit:?}"))),
    }
}
