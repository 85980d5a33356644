//! A private PostgreSQL server, or the one that the environment names.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use incumbent_proving::server::postgres as private;

/// A schema that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    let base = private::shared();
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}schema={}", super::fresh())
}

/// A server of its own for a test that stops or changes it.
pub struct Server(incumbent_proving::Server);

impl Deref for Server {
    type Target = incumbent_proving::Server;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Server {
    /// Starts one with these settings (`name=value`).
    pub fn start(settings: &[&str]) -> Self {
        Self(private::start(settings))
    }

    /// Lets `prepare` change the data directory before the start.
    pub fn start_with(settings: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        Self(private::start_with(settings, prepare))
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Its URL for this user.
    pub fn url(&self, user: &str) -> String {
        private::url(self, user)
    }

    /// Its URL with a schema that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("{}?schema={}", self.url("postgres"), super::fresh())
    }
}
