//! A private PgBouncer in transaction mode.

use incumbent_proving::server::pgbouncer;

pub struct Bouncer(incumbent_proving::Server);

impl Bouncer {
    /// Starts one before the server at this port, with more lines for its configuration.
    pub fn before(server: u16, more: &str) -> Self {
        Self(pgbouncer::before(server, more))
    }

    pub fn url(&self, schema: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?schema={schema}", self.0.port())
    }
}
