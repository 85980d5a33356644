//! A private PostgreSQL server, or the one that the environment names.

use std::path::{Path, PathBuf};

use incumbent_proving::server::{postgres as private, with_parameter};

/// A schema that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    with_parameter(&private::shared(), "schema", &super::fresh())
}

incumbent_proving::own_server!();

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
