//! Where the cluster is: the store's URL and the cluster's name.

use std::path::PathBuf;

use incumbent::{Cluster, OpenStore};

use crate::exit::{Failure, Outcome};

/// Where the cluster is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The store's URL. It may hold a password, so it is shown only by [`Place::shown`].
    pub(crate) url: String,
    /// The cluster's name.
    pub(crate) cluster: String,
    /// Whether the store was chosen, and not the default.
    pub(crate) store_chosen: bool,
    /// Whether the cluster was chosen, and not the default.
    pub(crate) cluster_chosen: bool,
}

impl Place {
    /// What was chosen, and the defaults for the rest.
    pub(crate) fn new(store: Option<&str>, cluster: Option<&str>) -> Outcome<Self> {
        let url = match store {
            Some(url) => url.to_owned(),
            None => default_url()?,
        };
        Ok(Self {
            url,
            cluster: cluster.unwrap_or("default").to_owned(),
            store_chosen: store.is_some(),
            cluster_chosen: cluster.is_some(),
        })
    }

    /// The same cluster in another store.
    pub(crate) fn with_store(mut self, url: Option<&str>) -> Self {
        if let Some(url) = url {
            url.clone_into(&mut self.url);
            self.store_chosen = true;
        }
        self
    }

    /// Opens the store, and makes what is missing.
    pub(crate) async fn open(&self) -> Outcome<OpenStore> {
        self.check()?;
        if !self.store_chosen {
            make_default_directory()?;
        }
        Ok(incumbent::open(&self.url).await?)
    }

    /// Opens the store for those who only look. A file that was named and isn't there is not
    /// made: its name is more likely mistyped.
    pub(crate) async fn open_existing(&self) -> Outcome<OpenStore> {
        let path = self.check()?;
        if let Some(path) = path.filter(|path| self.store_chosen && !path.exists()) {
            return Err(Failure::new(
                crate::exit::Code::Unreachable,
                format!(
                    "there is no file {}, which the store {} names: correct the path, or make it \
                     with `incumbent store init {}`",
                    path.display(),
                    self.shown(),
                    self.shown()
                ),
            ));
        }
        self.open().await
    }

    /// Opens the cluster for those who only look.
    pub(crate) async fn cluster(&self) -> Outcome<Cluster> {
        let store = self.open_existing().await?;
        Ok(Cluster::new(store, &self.cluster)?)
    }

    /// The URL as it may be shown: without user and password.
    pub(crate) fn shown(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else { return self.url.clone() };
        let end = rest.find('/').unwrap_or(rest.len());
        match rest.get(..end).and_then(|authority| authority.rfind('@')) {
            Some(at) => format!("{scheme}://…{}", rest.get(at..).unwrap_or_default()),
            None => self.url.clone(),
        }
    }

    /// Whether nobody but this process can see the store.
    pub(crate) fn is_private(&self) -> bool {
        self.url.starts_with("memory:") || self.url.starts_with("solo:")
    }

    /// Checks what can be checked without opening; a SQLite URL gives its path.
    fn check(&self) -> Outcome<Option<PathBuf>> {
        incumbent::sqlite::SqliteOptions::parse(&self.url)
            .map(|_| self.path())
            .or_else(|error| if self.is_sqlite() { Err(Failure::usage(error)) } else { Ok(None) })
    }

    fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    /// The file of a plain SQLite URL; one with escapes is left to the store.
    fn path(&self) -> Option<PathBuf> {
        let path = self.url.strip_prefix("sqlite:")?;
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let path = path.strip_prefix("//").unwrap_or(path);
        (!path.contains('%')).then(|| PathBuf::from(path))
    }
}

fn default_url() -> Outcome<String> {
    let path = default_directory()?.join("incumbent.db");
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f");
    Ok(format!("sqlite:{escaped}"))
}

fn make_default_directory() -> Outcome {
    let directory = default_directory()?;
    std::fs::create_dir_all(&directory).map_err(|error| {
        Failure::new(
            crate::exit::Code::Unreachable,
            format!(
                "the directory {} for the default store can't be made: {error}. Name a store \
                 with --store or INCUMBENT_STORE",
                directory.display()
            ),
        )
    })
}

/// Where programs keep what should outlive a restart but is nobody's document.
fn default_directory() -> Outcome<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    // The specification says that a relative path there is to be ignored.
    let state = named("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || named("HOME").map(|home| PathBuf::from(home).join(".local").join("state"));
    state.or_else(home).map(|state| state.join("incumbent")).ok_or_else(|| {
        Failure::usage(
            "neither HOME nor XDG_STATE_HOME says where the default store should be: name a \
             store with --store or INCUMBENT_STORE, for instance --store sqlite:app.db",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let place = Place::new(Some("postgres://me:secret@db/app"), None).unwrap();
        assert_eq!(place.shown(), "postgres://…@db/app");
    }

    #[test]
    fn a_path_is_found_in_a_url() {
        let path = |url| Place::new(Some(url), None).unwrap().path();
        assert_eq!(path("sqlite:///var/app.db?busy=1"), Some(PathBuf::from("/var/app.db")));
        assert_eq!(path("sqlite:a%20b.db"), None);
    }
}
