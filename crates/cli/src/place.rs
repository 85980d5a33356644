//! Where the cluster is: the store's URL and the cluster's name.

use std::fmt;
use std::path::PathBuf;

use incumbent::{Cluster, HintSettings, OpenError, OpenStore};

use crate::exit::{Code, Failure, Outcome};

/// Where the cluster is.
#[derive(Clone)]
pub(crate) struct Place {
    /// The store's URL. It may hold a password, so it is shown only by [`Place::shown`].
    pub(crate) url: String,
    /// The cluster's name.
    pub(crate) cluster: String,
    /// Whether the store was chosen, and not the default.
    pub(crate) store_chosen: bool,
    /// Whether the cluster was chosen, and not the default.
    pub(crate) cluster_chosen: bool,
    /// The variable or the line of a file that names the store, if it is one of these.
    pub(crate) store_from: Option<String>,
    /// Whether and where hints are taken and sent, where the store pushes none.
    pub(crate) hints: HintSettings,
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
            store_from: None,
            hints: HintSettings::default(),
        })
    }

    /// The same cluster in another store.
    pub(crate) fn with_store(mut self, url: Option<&str>) -> Self {
        if let Some(url) = url {
            url.clone_into(&mut self.url);
            self.store_chosen = true;
            self.store_from = None;
        }
        self
    }

    /// Opens the store, and makes what is missing.
    pub(crate) async fn open(&self) -> Outcome<OpenStore> {
        Ok(self.try_open().await??)
    }

    /// As [`Self::open`], for those who want to know what the store said.
    pub(crate) async fn try_open(&self) -> Outcome<Result<OpenStore, OpenError>> {
        self.check()?;
        if !self.store_chosen {
            make_default_directory()?;
        }
        self.understood(incumbent::open(&self.url).await)
    }

    /// A URL that isn't understood is told apart from a store that can't be opened.
    fn understood(
        &self,
        opened: Result<OpenStore, OpenError>,
    ) -> Outcome<Result<OpenStore, OpenError>> {
        match opened {
            Err(
                error @ (OpenError::UnknownScheme { .. }
                | OpenError::NotBuilt { .. }
                | OpenError::Url { .. }),
            ) => Err(self.unread(error)),
            opened => Ok(opened),
        }
    }

    /// Opens the store for those who change what is there. A file that was named and isn't there
    /// is not made: its name is more likely mistyped.
    pub(crate) async fn open_existing(&self) -> Outcome<OpenStore> {
        self.expect_file()?;
        self.open().await
    }

    /// Opens the store for those who only look: that needs no right but to read, and makes nothing.
    pub(crate) async fn open_to_look(&self) -> Outcome<OpenStore> {
        self.expect_file()?;
        Ok(self.understood(incumbent::open_to_look(&self.url).await)??)
    }

    /// Opens the cluster for those who only look.
    pub(crate) async fn cluster(&self) -> Outcome<Cluster> {
        Ok(Cluster::new(self.open_to_look().await?, &self.cluster)?)
    }

    /// Opens the cluster for those who ask for a change.
    pub(crate) async fn cluster_to_change(&self) -> Outcome<Cluster> {
        let cluster = Cluster::new(self.open_existing().await?, &self.cluster)?;
        Ok(cluster.with_hints(self.hints.clone()))
    }

    /// Sees that a file which was named is there.
    fn expect_file(&self) -> Outcome {
        let path = self.check()?;
        if let Some(path) = path.filter(|path| self.store_chosen && !path.exists()) {
            return Err(Failure::new(
                Code::Unreachable,
                format!(
                    "there is no file {}, which the store {} names: correct the path, or make it \
                     with `incumbent store init {}`",
                    path.display(),
                    self.shown(),
                    self.shown()
                ),
            ));
        }
        Ok(())
    }

    /// The URL as it may be shown: without what is secret in it.
    pub(crate) fn shown(&self) -> String {
        incumbent_store_common::shown(&self.url)
    }

    /// Whether nobody but this process can see the store.
    pub(crate) fn is_private(&self) -> bool {
        self.url.starts_with("memory:") || self.url.starts_with("solo:")
    }

    /// Checks what can be checked without opening; a SQLite URL gives its path.
    fn check(&self) -> Outcome<Option<PathBuf>> {
        incumbent::sqlite::SqliteOptions::parse(&self.url)
            .map(|_| self.path())
            .or_else(|error| if self.is_sqlite() { Err(self.unread(error)) } else { Ok(None) })
    }

    fn unread(&self, error: impl fmt::Display) -> Failure {
        match &self.store_from {
            Some(from) => Failure::usage(format!("{from}: {error}")),
            None => Failure::usage(error),
        }
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

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, cluster) = (self.shown(), &self.cluster);
        f.debug_struct("Place").field("url", &url).field("cluster", cluster).finish_non_exhaustive()
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
            Code::Unreachable,
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
    // The specification says that a relative path there is to be ignored. One in HOME would mean
    // another store in each directory.
    let absolute = |variable| named(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".local").join("state"));
    let state = absolute("XDG_STATE_HOME").or_else(home);
    state.map(|state| state.join("incumbent")).ok_or_else(|| {
        Failure::usage(
            "neither HOME nor XDG_STATE_HOME says with an absolute path where the default store \
             should be: name a store with --store or INCUMBENT_STORE, for instance --store \
             sqlite:app.db",
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
