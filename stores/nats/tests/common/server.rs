//! A private NATS server, or the one that the environment names.

use std::ops::Deref;

use incumbent_proving::server::nats as private;

/// A bucket that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    let base = private::shared();
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}bucket={}", super::fresh())
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
    /// Starts one with JetStream.
    pub fn start() -> Self {
        Self(private::start())
    }

    /// Starts one with this configuration, in which `DIRECTORY` stands for its own.
    pub fn with(configuration: &str) -> Self {
        Self(private::start_with(configuration))
    }

    pub fn url(&self) -> String {
        private::url(self)
    }

    /// Its URL with a bucket that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("{}?bucket={}", self.url(), super::fresh())
    }

    /// Kills it and removes all that it kept.
    pub fn wipe(&self) {
        self.kill();
        let _ = std::fs::remove_dir_all(self.path().join("jetstream"));
    }
}
