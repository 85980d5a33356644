//! The counters of the shards that this node owns: read from memory, and written through.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{self, Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use incumbent::{BoxError, Duty, Fence, Term};
use incumbent_fence::sqlite;
use rusqlite::Connection;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS counters (
    shard TEXT, key TEXT, count INTEGER NOT NULL, PRIMARY KEY (shard, key)) WITHOUT ROWID";

/// The counters of one shard, as loaded under one term. One request after the other changes them.
pub(crate) struct Shard {
    fence: Fence,
    counts: Arc<Mutex<BTreeMap<String, i64>>>,
}

pub(crate) struct Counters {
    file: PathBuf,
    /// Those that this node owns.
    shards: sync::Mutex<BTreeMap<String, Weak<Shard>>>,
}

impl Counters {
    pub(crate) fn open(file: PathBuf) -> Result<Self, BoxError> {
        connect(&file)?.execute_batch(TABLE)?;
        Ok(Self { file, shards: sync::Mutex::default() })
    }

    /// Reads a shard, which is there until this is dropped. Its former owner writes no more: what it
    /// might send is refused by the fence.
    pub(crate) async fn load(&self, duty: &Duty) -> Result<Arc<Shard>, BoxError> {
        let (file, name) = (self.file.clone(), duty.name().to_owned());
        let read = move || {
            let connection = connect(&file)?;
            let mut rows =
                connection.prepare("SELECT key, count FROM counters WHERE shard = ?1")?;
            let rows = rows.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok::<BTreeMap<String, i64>, BoxError>(rows.collect::<Result<_, _>>()?)
        };
        let counts = Arc::new(Mutex::new(spawn_blocking(read).await??));
        let loaded = Arc::new(Shard { fence: duty.fence(), counts });
        self.shards().insert(duty.name().to_owned(), Arc::downgrade(&loaded));
        Ok(loaded)
    }

    pub(crate) async fn show(&self, shard: &str, key: &str, term: Term) -> Result<i64, BoxError> {
        Ok(self.counts(shard, &term)?.lock().await.get(key).copied().unwrap_or(0))
    }

    /// Counts one more. It is in the file when this returns.
    pub(crate) async fn add(&self, shard: &str, key: &str, term: Term) -> Result<i64, BoxError> {
        let mut counts = self.counts(shard, &term)?.lock_owned().await;
        let count = counts.get(key).copied().unwrap_or(0) + 1;
        let (file, shard, key) = (self.file.clone(), shard.to_owned(), key.to_owned());
        // Blocking work goes on when the request is cut off. So the memory changes only there too.
        let write = move || {
            let within = Duration::from_millis(300);
            sqlite::transaction(&mut connect(&file)?, &term, within, |transaction| {
                let sql = "INSERT OR REPLACE INTO counters VALUES (?1, ?2, ?3)";
                transaction.execute(sql, (&shard, &key, count))?;
                Ok::<_, BoxError>(())
            })?;
            counts.insert(key, count);
            Ok::<i64, BoxError>(count)
        };
        spawn_blocking(write).await?
    }

    /// What was loaded under this very term: what is left of an earlier one is not.
    fn counts(
        &self,
        shard: &str,
        term: &Term,
    ) -> Result<Arc<Mutex<BTreeMap<String, i64>>>, BoxError> {
        let loaded = self.shards().get(shard).and_then(Weak::upgrade);
        let loaded = loaded.filter(|loaded| loaded.fence == term.fence());
        let loaded = loaded.ok_or_else(|| format!("shard {shard} is being loaded: try again"))?;
        Ok(Arc::clone(&loaded.counts))
    }

    fn shards(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Shard>>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(file: &Path) -> Result<Connection, BoxError> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    Ok(connection)
}
