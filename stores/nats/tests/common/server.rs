//! A private NATS server, or the one that the environment names.

use incumbent_proving::server::{nats as private, with_parameter};

/// A bucket that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    with_parameter(&private::shared(), "bucket", &super::fresh())
}

incumbent_proving::own_server!();

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
