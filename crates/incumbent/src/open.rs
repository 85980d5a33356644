//! Opening a store by its URL.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use incumbent_core::store::{Store, StoreError};
use incumbent_memory::MemoryStore;

use crate::error::OpenError;
use crate::thread;

/// Opens the store that a URL names.
///
/// | URL | store |
/// | --- | --- |
/// | `sqlite:path/to/file.db` | SQLite: several processes on one machine (feature `sqlite`) |
/// | `memory:`, `memory:name` | in this process, shared by all who open the same name in it |
/// | `solo:` | in this process and private to this call: one node, which leads at once |
///
/// The store runs on incumbent's own thread. Dropping the future before it is ready opens the
/// store for nobody and closes it again.
///
/// # Errors
/// Names the URL, what is wrong with it and what would be right.
pub async fn open(url: &str) -> Result<OpenStore, OpenError> {
    let url = url.to_owned();
    // What opens a store may block, so it runs beside the thread, in the context of its runtime.
    let opening = thread::spawn_blocking({
        let url = url.clone();
        move || open_now(&url)
    })?;
    match opening.await {
        Ok(opened) => opened,
        Err(error) => {
            let source = StoreError::rejected(format!("opening it panicked: {error}"));
            Err(OpenError::Store { url: redacted(&url), source })
        }
    }
}

/// An opened store. Clones share its connections; nodes of one process should share it.
///
/// Anything that implements [`Store`] becomes one by `into()`.
#[derive(Clone)]
pub struct OpenStore(Arc<dyn Store>);

impl OpenStore {
    /// A store that is shared already.
    #[must_use]
    pub fn shared(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

impl<S: Store> From<S> for OpenStore {
    fn from(store: S) -> Self {
        Self(Arc::new(store))
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
        &*self.0
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenStore").field(&self.0.capabilities().kind).finish()
    }
}

/// The schemes that this build knows, for messages.
#[must_use]
pub fn schemes() -> &'static [&'static str] {
    if cfg!(feature = "sqlite") { &["sqlite:", "memory:", "solo:"] } else { &["memory:", "solo:"] }
}

fn open_now(url: &str) -> Result<OpenStore, OpenError> {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    match scheme {
        "solo" => Ok(MemoryStore::new().into()),
        "memory" => Ok(shared_memory(rest).into()),
        "sqlite" => open_sqlite(url),
        _ => Err(OpenError::UnknownScheme {
            scheme: scheme.chars().take(32).collect(),
            url: redacted(url),
            known: schemes().join(", "),
        }),
    }
}

#[cfg(feature = "sqlite")]
fn open_sqlite(url: &str) -> Result<OpenStore, OpenError> {
    let opened = incumbent_sqlite::SqliteStore::open_url(url);
    opened.map(OpenStore::from).map_err(|source| OpenError::Store { url: redacted(url), source })
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(url: &str) -> Result<OpenStore, OpenError> {
    let known = schemes().join(", ");
    Err(OpenError::NotBuilt { url: redacted(url), feature: "sqlite", known })
}

/// Memory stores live as long as the process, so that a node that leaves finds its terms again.
fn shared_memory(name: &str) -> MemoryStore {
    static STORES: Mutex<BTreeMap<String, MemoryStore>> = Mutex::new(BTreeMap::new());
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    stores.entry(name.to_owned()).or_default().clone()
}

/// The URL as it may be shown: user and password are left out.
fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest.get(..end).and_then(|authority| authority.rfind('@')) {
        Some(at) => format!("{scheme}://…{}", rest.get(at..).unwrap_or_default()),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(redacted("postgres://me:secret@db/app"), "postgres://…@db/app");
        assert_eq!(redacted("sqlite:app.db"), "sqlite:app.db");
        assert_eq!(redacted("sqlite:///a@b.db"), "sqlite:///a@b.db");
    }

    #[test]
    fn an_unknown_scheme_names_the_known_ones() {
        let said = open_now("mongo://x").unwrap_err().to_string();
        assert!(said.contains("\"mongo\"") && said.contains("memory:"), "{said}");
        let said = open_now("app.db").unwrap_err().to_string();
        assert!(said.contains("app.db"), "{said}");
    }

    #[test]
    fn memory_is_shared_by_name_and_solo_is_not_shared() {
        assert_eq!(open_now("memory:x").unwrap().capabilities().kind, "memory");
        assert_eq!(open_now("solo:").unwrap().capabilities().kind, "memory");
    }
}
