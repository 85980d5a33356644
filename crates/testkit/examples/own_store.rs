//! A complete store in a hundred lines: all records in one JSON file, guarded by a lock.
//!
//! Several processes can share it. It is slow, because every write writes the whole file, and it
//! can't push; but it keeps every rule of the contract. `docs/write-your-own-store.md` goes
//! through it.
//!
//! ```sh
//! cargo run -p incumbent-testkit --example own_store
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, Expect, Found, HintGuard, Key, Lane, Outcome, Put, Read,
    Record, Reply, Store, StoreError, Version, Wake, Write,
};

/// For each cluster and key: the stamp of the last write, and the value.
type Contents = BTreeMap<String, BTreeMap<String, (String, String)>>;

/// All records in one file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FileStore {
    path: Arc<Path>,
}

impl FileStore {
    /// A store in this file, which needn't be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into().into() }
    }

    /// Runs one exchange while nobody else has the lock.
    fn work(&self, cluster: &str, exchange: &Exchange) -> Result<Reply, StoreError> {
        let lock = File::create(self.path.with_extension("lock")).map_err(StoreError::rejected)?;
        lock.lock().map_err(StoreError::unavailable)?;
        let mut contents = self.read()?;
        let records = contents.entry(cluster.to_owned()).or_default();
        // Each write is compared and applied on its own: one that is refused undoes no other.
        let writes: Vec<Outcome> =
            exchange.writes.iter().map(|write| apply(records, write)).collect();
        let reads = exchange.reads.iter().map(|read| find(records, read)).collect();
        if writes.iter().any(|outcome| *outcome != Outcome::Refused) {
            self.write(&contents)?;
        }
        Ok(Reply { writes, reads })
    }

    fn read(&self) -> Result<Contents, StoreError> {
        match fs::read(&*self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                StoreError::rejected(format!("{} is damaged: {error}", self.path.display()))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Contents::new()),
            Err(error) => Err(StoreError::unavailable(error)),
        }
    }

    /// Writes beside the file and renames, so that a crash leaves the old records or the new.
    fn write(&self, contents: &Contents) -> Result<(), StoreError> {
        let beside = self.path.with_extension("new");
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(contents)?)?;
            file.sync_all()
        });
        // Up to here surely nothing was applied. After the rename nobody can say.
        written.map_err(StoreError::unavailable)?;
        fs::rename(&beside, &*self.path).map_err(StoreError::unknown)
    }
}

impl Store for FileStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "file",
            push: false,
            clock: false,
            max_operations: 10_000,
            max_value: 1 << 20,
            durable: true,
            shared: true,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, _: Lane, exchange: Exchange) -> Answer<'a> {
        let (store, cluster) = (self.clone(), cluster.to_owned());
        Box::pin(async move {
            // A file blocks, and whoever asks beats on this thread: so do it on another.
            let work = tokio::task::spawn_blocking(move || store.work(&cluster, &exchange));
            work.await.unwrap_or_else(|error| Err(StoreError::unknown(error)))
        })
    }

    fn hints(&self, _: &str, _: Wake) -> Option<HintGuard> {
        None
    }
}

type Records = BTreeMap<String, (String, String)>;

fn apply(records: &mut Records, write: &Write) -> Outcome {
    let Put { key, expect, value, stamp, .. } = match write {
        Write::Put(put) => put,
        Write::Delete(key) => {
            records.remove(key.as_str());
            return Outcome::Deleted;
        }
    };
    let expected = match (expect, records.get(key.as_str())) {
        (Expect::Absent, None) => true,
        (Expect::Version(version), Some((stamp, _))) => version.as_str() == stamp,
        (Expect::Absent, Some(_)) | (Expect::Version(_), None) => false,
    };
    let Ok(value) = String::from_utf8(value.clone()) else { return Outcome::Refused };
    if !expected {
        return Outcome::Refused;
    }
    // The stamp is the version: it never repeats, not even after a delete.
    records.insert(key.as_str().to_owned(), (stamp.to_string(), value));
    Outcome::Applied(stamp.version())
}

fn find(records: &Records, read: &Read) -> Found {
    match read {
        Read::Key { key, unless } => match records.get(key.as_str()) {
            None => Found::Absent,
            Some((stamp, _)) if unless.as_ref().is_some_and(|known| known.as_str() == stamp) => {
                Found::Unchanged
            }
            Some(entry) => Found::Record(record(key.as_str(), entry)),
        },
        Read::Prefix(prefix) => Found::Records(
            records
                .range(prefix.as_str().to_owned()..)
                .take_while(|(key, _)| key.starts_with(prefix.as_str()))
                .map(|(key, entry)| record(key, entry))
                .collect(),
        ),
    }
}

fn record(key: &str, (stamp, value): &(String, String)) -> Record {
    Record {
        key: Key::new(key),
        value: value.clone().into_bytes(),
        version: Version::new(stamp),
        age: None,
    }
}

/// Tries the kit on it.
#[allow(dead_code, reason = "the test of this example has its own way to run it")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("records.json");
    let opener = move || {
        let store = FileStore::new(path.clone());
        async move { Ok(Arc::new(store)) }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
    let report = runtime.block_on(incumbent_testkit::Conformance::new(opener).run());
    println!("{report}");
    if report.is_passed() { Ok(()) } else { Err("the store does not conform".into()) }
}
