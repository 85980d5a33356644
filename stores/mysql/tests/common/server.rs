//! A private MariaDB server, or the one that the environment names.

use incumbent_proving::server::{mariadb as private, with_parameter};

/// Tables that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    with_parameter(&private::shared(), "prefix", &super::fresh())
}

incumbent_proving::own_server!();

impl Server {
    /// Starts one with these options (`--name=value`) and the database `app`.
    pub fn start(settings: &[&str]) -> Self {
        Self(private::start(settings))
    }

    /// The URL of its database for this user.
    pub fn url(&self, user: &str) -> String {
        private::url(self, user)
    }

    /// The same with tables that no other test uses.
    pub fn fresh_url(&self) -> String {
        format!("{}?prefix={}", self.url("root"), super::fresh())
    }
}
