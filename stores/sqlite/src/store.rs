//! The store itself: three lanes to the database and a watcher.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use incumbent_core::store::{
    Access, Answer, AssertionSql, Capabilities, Exchange, HintGuard, Lane, Obstacles, Store,
    StoreError, Wake,
};

use crate::closing;
use crate::database::Database;
use crate::error::During;
use crate::fence;
use crate::file_system;
use crate::hints::Watcher;
use crate::lane::LaneSender;
use crate::obstacles;
use crate::options::{SqliteOptions, Synchronous};

/// Records in a SQLite database. Clones share their connections, which close with the last.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<SqliteOptions>,
    beat: LaneSender,
    change: LaneSender,
    watch: LaneSender,
    watcher: Watcher,
    durable: bool,
    /// They end when the lanes above are gone.
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        closing::begun(self.threads.drain(..));
    }
}

impl SqliteStore {
    /// Opens a database, given its path or [`SqliteOptions`]. Makes the file and its tables where
    /// they are missing.
    ///
    /// This reads the disk and may wait for another connection for as long as a beat would, so it
    /// is for the start of a program.
    ///
    /// # Errors
    ///
    /// Rejected if the file can't be used as it is, unavailable if it was locked for too long or
    /// its disk is full. The message names the file and the next step.
    pub fn open(options: impl Into<SqliteOptions>) -> Result<Self, StoreError> {
        let options = Arc::new(options.into().checked()?);
        let busy = options.busy_of(Lane::Beat);
        let beating = Arc::new(options.of_beats());
        let first = match options.access {
            Access::Look => Database::look(&options, busy, During::Open)?.filter(Database::is_live),
            _ => Some(Database::open(&beating, busy, During::Open)?),
        };
        let start = |lane, first, checkpoints| {
            let options = if lane == Lane::Beat { &beating } else { &options };
            LaneSender::start(lane, Arc::clone(options), first, checkpoints).map_err(|error| {
                StoreError::unavailable(format!(
                    "can't start a thread for the SQLite store: {error}. Raise this process's \
                     limit of threads or memory"
                ))
            })
        };
        let (change, changes) = start(Lane::Change, None, None)?;
        let (watch, watches) = start(Lane::Watch, None, None)?;
        let (beat, beats) = start(Lane::Beat, first, Some(change.clone()))?;
        let threads = vec![changes, watches, beats];
        let watcher = Watcher::new(&options);
        let durable =
            options.synchronous == Synchronous::Full && !file_system::is_memory(&options.path);
        Ok(Self {
            inner: Arc::new(Inner { options, beat, change, watch, watcher, durable, threads }),
        })
    }

    /// Opens the database that a URL names; see [`SqliteOptions::parse`].
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`], and rejected if the URL isn't understood.
    pub fn open_url(url: &str) -> Result<Self, StoreError> {
        Self::open(SqliteOptions::parse(url)?)
    }

    /// The absolute path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.options.path
    }
}

impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "sqlite",
            push: true,
            clock: true,
            max_operations: 10_000,
            max_value: 16 * 1024 * 1024,
            durable: self.inner.durable,
            shared: true,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        let Inner { beat, change, watch, watcher, .. } = &*self.inner;
        let sender = match lane {
            Lane::Beat => beat,
            Lane::Change => change,
            Lane::Watch => watch,
        };
        Box::pin(async move {
            let answer = sender.exchange(cluster, exchange).await;
            if answer.is_err() {
                // Should the file be gone, a lane that is idle would not notice by itself.
                for lane in [beat, change, watch] {
                    lane.check();
                }
                watcher.check();
            }
            answer
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.inner.watcher.subscribe(cluster, wake).ok()
    }

    fn obstacles(&self) -> Obstacles<'_> {
        Box::pin(obstacles::find(self.path()))
    }

    fn assertion(&self) -> Option<AssertionSql> {
        Some(fence::assertion(&self.inner.options.prefix))
    }

    fn warnings(&self) -> Vec<String> {
        let power = match self.inner.options.synchronous {
            Synchronous::Full => None,
            Synchronous::Normal => Some(
                "synchronous is normal: if the machine loses its power, the last acknowledged \
                 writes may be gone, terms included. Leave synchronous= out of the URL."
                    .to_owned(),
            ),
        };
        power.into_iter().chain(file_system::warning(self.path())).collect()
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
