//! What can be chosen about the store.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Secret, TlsFiles, choices, process_environment};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::names::Names;
use crate::{fence, schema, url};

/// Which database, and how it is used. Never shows its password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    pub(crate) config: Config,
    pub(crate) names: Names,
    /// Unless the configuration has it.
    pub(crate) password: Secret,
    /// A file of libpq's form, where there is no other password.
    pub(crate) passfile: Option<PathBuf>,
    pub(crate) tls: TlsOptions,
    pub(crate) connect_timeout: Duration,
    pub(crate) lock_timeout: Duration,
    pub(crate) statement_timeout: Duration,
    pub(crate) pooler: Pooler,
    pub(crate) access: Access,
}

/// Whether a pooler such as PgBouncer stands between this process and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pooler {
    /// Found out when a connection is opened, by settings that a pooler doesn't pass on.
    Detect,
    /// There is one, in transaction mode: no settings of the session, no prepared statements, no
    /// push.
    Yes,
}

/// How the connection is encrypted, in libpq's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub(crate) mode: TlsMode,
    /// Whether it is said whom to trust. Without a file that is whom this machine trusts.
    pub(crate) rooted: bool,
    pub(crate) files: TlsFiles,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

const LONGEST_LOCK: Duration = Duration::from_secs(60);
const LONGEST_STATEMENT: Duration = Duration::from_secs(600);

impl PostgresOptions {
    /// The options in a URL such as `postgres://app@db.example/app?sslmode=verify-full`.
    ///
    /// It is read as libpq does: several hosts, `sslmode`, `sslrootcert` (a file, or `system`),
    /// `sslcert`, `sslkey`, `connect_timeout` (seconds), `application_name`, `options`,
    /// `target_session_attrs`, `passfile`, keepalives; what the URL leaves open comes from
    /// `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGPASSFILE` and `PGSSL…`.
    ///
    /// incumbent's own: `schema` and `prefix` (of the tables), `passwordfile` (a file with nothing
    /// but the password, read again for each connection), `lock_timeout` and `statement_timeout`
    /// (milliseconds), `pooler` (`detect`, `yes`).
    ///
    /// # Errors
    ///
    /// Rejected if something in the URL isn't understood; the message names it.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        url::parse(url, process_environment())
    }

    /// The schema of all tables and views: `public` by default. Case matters.
    ///
    /// # Errors
    ///
    /// Rejected if it is no plain name.
    pub fn schema(mut self, schema: &str) -> Result<Self, StoreError> {
        self.names = Names::new(schema, self.names.prefix())?;
        Ok(self)
    }

    /// What the names of all tables and views start with: `incumbent_` by default. Case matters.
    ///
    /// # Errors
    ///
    /// Rejected if it is no plain name.
    pub fn prefix(mut self, prefix: &str) -> Result<Self, StoreError> {
        self.names = Names::new(self.names.plain_schema(), prefix)?;
        Ok(self)
    }

    choices! {
        /// How long a change waits for a row that somebody else has locked, 1 s by default. Then it
        /// is refused. At most 60 s.
        lock_timeout: up to LONGEST_LOCK;

        /// How long the server works on anything of ours at most, 10 s by default.
        statement_timeout: up to LONGEST_STATEMENT;

        /// Whether a pooler stands in between: [`Pooler::Detect`] by default.
        pooler: Pooler;

        /// What the store is opened for: [`Access::Full`] by default. To look, a role needs `SELECT` on
        /// the tables and no more, and nothing is made.
        access: Access;
    }

    /// The SQL that makes the tables and views, for those who let no application do that.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        schema::sql(self)
    }

    /// The SQL that gives this role the least rights that it needs once the tables are there, for
    /// what the store is opened for.
    #[must_use]
    pub fn grants_sql(&self) -> String {
        schema::grants(self)
    }

    /// The SQL that asserts a term inside an application's own transaction; see
    /// [`crate::PostgresStore::fence_sql`].
    #[must_use]
    pub fn fence_sql(&self) -> String {
        fence::sql(self)
    }

    /// The server as messages name it.
    pub(crate) fn server(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(place, host)| {
            let port = ports.get(place).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        });
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let database = self.config.get_dbname().map_or_else(|| self.user(), str::to_owned);
        format!("PostgreSQL {hosts}/{database}")
    }

    pub(crate) fn user(&self) -> String {
        let given = self.config.get_user().map(str::to_owned);
        given.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "incumbent".to_owned())
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("server", &self.server())
            .field("user", &self.user())
            .field("names", &self.names)
            .field("tls", &self.tls)
            .field("connect_timeout", &self.connect_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("pooler", &self.pooler)
            .finish_non_exhaustive()
    }
}
