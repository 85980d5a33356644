//! Opening a store by its URL.

pub(crate) mod durability;
pub(crate) mod looking;
pub(crate) mod stores;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use incumbent_core::store::{Access, Store, StoreError};
use incumbent_memory::MemoryStore;
use incumbent_store_common::{absolute, shown, shown_scheme};

use crate::driver::chorus::Chorus;
use crate::driver::obstacles::LockSight;
use crate::driver::thread;
use crate::error::OpenError;
use crate::open::looking::Looking;
use crate::open::stores::KINDS;

/// Opens the store that a URL names.
///
/// | URL | store |
/// | --- | --- |
/// | `sqlite:path/to/file.db` | SQLite: several processes on one machine (feature `sqlite`) |
/// | `postgres://user@host/database` | PostgreSQL 13 and later (feature `postgres`) |
/// | `redis://host`, `rediss://host` | Redis 6 and later, Valkey (feature `redis`) |
/// | `mysql://user@host/database`, `mariadb://…` | MySQL 8, MariaDB 10.6 and later (feature `mysql`) |
/// | `nats://host`, `tls://host` | NATS 2.9 and later with JetStream (feature `nats`) |
/// | `etcd://host:2379` | etcd 3.4 and later (feature `etcd`) |
/// | `s3://bucket/prefix`, `gs://…`, `az://…` | object storage (feature `object-storage`) |
/// | `memory:`, `memory:name` | in this process, shared by all who open the same name in it |
/// | `solo:` | in this process and private to this call: one node, which leads at once |
///
/// The store runs on incumbent's own thread. Dropping the future before it is ready opens the
/// store for nobody and closes it again.
///
/// # Errors
/// Names the URL, what is wrong with it and what would be right.
pub async fn open(url: &str) -> Result<OpenStore, OpenError> {
    open_for(url, Access::Full).await
}

/// Opens the store that a URL names, as [`open`] does, to look at it: with the right to read and
/// no other. Nothing is made or written, and what isn't there yet is read as empty.
///
/// It is for [`Cluster`](crate::Cluster), as long as that only looks: who asks for a change or
/// joins is refused.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// // GRANT SELECT is all that the role `dashboard` needs.
/// let store = incumbent::open_to_look("postgres://dashboard@db.example/app").await?;
/// let cluster = incumbent::Cluster::new(store, "billing")?;
/// println!("{:?}", cluster.leader("scheduler").await?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`open`], and if there is no right to read.
pub async fn open_to_look(url: &str) -> Result<OpenStore, OpenError> {
    let OpenStore { store, .. } = open_for(url, Access::Look).await?;
    Ok(Looking(store).into())
}

async fn open_for(url: &str, access: Access) -> Result<OpenStore, OpenError> {
    let url = url.to_owned();
    // Its connections live where it was opened, so that is done on the thread.
    let opening = thread::spawn({
        let url = url.clone();
        async move { open_now(&url, access).await }
    })?;
    match opening.await {
        // What is known to this process alone is of no use to a witness.
        Ok(opened) if url.starts_with("memory:") || url.starts_with("solo:") => opened,
        // A witness may be in another directory.
        Ok(opened) => opened.map(|store| OpenStore { url: Some(absolute(&url).into()), ..store }),
        Err(error) => {
            let source = StoreError::rejected(format!("opening it panicked: {error}"));
            Err(OpenError::Store { url: shown(&url), source })
        }
    }
}

/// An opened store. Clones share its connections; nodes of one process should share it.
///
/// Anything that implements [`Store`] becomes one by `into()`.
#[derive(Clone)]
pub struct OpenStore {
    store: Arc<dyn Store>,
    /// Where others can open it too, if that is known.
    pub(crate) url: Option<Arc<str>>,
    /// Whose locks its writes wait for.
    pub(crate) sight: Arc<LockSight>,
    /// Those who beat together here.
    pub(crate) chorus: Arc<Chorus>,
}

impl OpenStore {
    /// A store that is shared already.
    #[must_use]
    pub fn shared(store: Arc<dyn Store>) -> Self {
        Self { store, url: None, sight: Arc::default(), chorus: Arc::default() }
    }
}

impl<S: Store> From<S> for OpenStore {
    fn from(store: S) -> Self {
        Self::shared(Arc::new(store))
    }
}

impl From<&OpenStore> for OpenStore {
    fn from(store: &OpenStore) -> Self {
        store.clone()
    }
}

impl Deref for OpenStore {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenStore").field(&self.store.capabilities().kind).finish()
    }
}

/// The schemes that this build knows, for messages.
#[must_use]
pub fn schemes() -> Vec<String> {
    let built = KINDS.iter().filter(|kind| kind.built);
    let schemes = built.flat_map(|kind| kind.schemes.iter().copied());
    schemes.chain(["memory", "solo"]).map(|scheme| format!("{scheme}:")).collect()
}

async fn open_now(url: &str, access: Access) -> Result<OpenStore, OpenError> {
    if url.trim() != url {
        let why = "it begins or ends with a blank or a line break: remove that";
        return Err(OpenError::Url { url: shown(url.trim()), source: StoreError::rejected(why) });
    }
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    match scheme {
        "solo" => return Ok(MemoryStore::new().into()),
        "memory" => return Ok(shared_memory(rest).into()),
        _ => {}
    }
    if let Some(connected) = stores::connect(scheme, url, access).await {
        return connected;
    }
    let known = schemes().join(", ");
    match KINDS.iter().find(|kind| kind.schemes.contains(&scheme)) {
        Some(kind) => Err(OpenError::NotBuilt { url: shown(url), feature: kind.feature, known }),
        None => {
            let scheme = shown_scheme(url).to_owned();
            Err(OpenError::UnknownScheme { scheme, url: shown(url), known })
        }
    }
}

/// Memory stores live as long as the process, so that a node that leaves finds its terms again.
fn shared_memory(name: &str) -> MemoryStore {
    static STORES: Mutex<BTreeMap<String, MemoryStore>> = Mutex::new(BTreeMap::new());
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    stores.entry(name.to_owned()).or_default().clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_scheme_names_the_known_ones() {
        let said = pollster::block_on(open_now("mongo://x", Access::Full)).unwrap_err().to_string();
        assert!(said.contains("\"mongo\"") && said.contains("memory:"), "{said}");
        let said = pollster::block_on(open_now("app.db", Access::Full)).unwrap_err().to_string();
        assert!(said.contains("app.db"), "{said}");
    }

    #[test]
    fn o40_what_is_probably_meant_is_said() {
        for (url, part) in [
            ("sqlite3:app.db", "sqlite: was probably meant"),
            ("SQLITE:app.db", "sqlite: was probably meant"),
            ("sqlit:app.db", "sqlite: was probably meant"),
            ("memroy:", "memory: was probably meant"),
            ("/var/lib/app.db", "sqlite:app.db"),
            ("\"sqlite:app.db\"", "without quotes"),
            ("$STORE", "without quotes"),
            (" sqlite:app.db", "begins or ends with a blank"),
            ("memory:x\n", "begins or ends with a blank"),
        ] {
            let said = pollster::block_on(open_now(url, Access::Full)).unwrap_err().to_string();
            assert!(said.contains(part), "{url}: {said}");
        }
        let said = pollster::block_on(open_now("mongo://x", Access::Full)).unwrap_err().to_string();
        assert!(!said.contains("probably"), "{said}");
    }

    #[test]
    fn a_store_that_is_not_built_in_names_its_feature() {
        for kind in KINDS.iter().filter(|kind| !kind.built) {
            let url = format!("{}://x", kind.schemes[0]);
            let said = pollster::block_on(open_now(&url, Access::Look)).unwrap_err().to_string();
            assert!(said.contains(kind.feature), "{said}");
        }
    }

    #[test]
    fn memory_is_shared_by_name_and_solo_is_not_shared() {
        for url in ["memory:x", "solo:"] {
            let store = pollster::block_on(open_now(url, Access::Full)).unwrap();
            assert_eq!(store.capabilities().kind, "memory");
        }
    }
}
