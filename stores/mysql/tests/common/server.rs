//! A private MariaDB server, or the one that the environment names.

use std::ops::Deref;

use incumbent_proving::server::mariadb as private;

/// Tables that no other test uses, on the server that the environment names or a shared one.
pub fn shared() -> String {
    let base = private::shared();
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}prefix={}", super::fresh())
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
