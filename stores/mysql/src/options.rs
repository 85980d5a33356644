//! What can be chosen about the store.

use std::fmt;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Endpoint, Secret, TlsFiles, choices, process_environment};

use crate::names::Names;
use crate::{fence, schema, url};

/// Which database, and how it is used. Never shows its password.
#[derive(Clone, PartialEq, Eq)]
pub struct MysqlOptions {
    pub(crate) endpoint: Endpoint,
    pub(crate) socket: Option<String>,
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) database: String,
    pub(crate) names: Names,
    pub(crate) tls: TlsOptions,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) access: Access,
}

/// How the connection is encrypted, in MySQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never.
    Disabled,
    /// If the server can, whoever it is. The default.
    Preferred,
    /// Always, whoever the server is, unless an authority is given.
    Required,
    /// Always, with a certificate of a trusted authority.
    VerifyCa,
    /// Always, with a certificate of a trusted authority for the host in the URL.
    VerifyIdentity,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub(crate) mode: SslMode,
    pub(crate) files: TlsFiles,
    pub(crate) hostname: Option<String>,
}

const LONGEST: Duration = Duration::from_secs(600);

impl MysqlOptions {
    /// The options in a URL such as `mysql://app@db.example/app?ssl-mode=VERIFY_IDENTITY`.
    ///
    /// MySQL's own words: `ssl-mode` (`DISABLED`, `PREFERRED`, `REQUIRED`, `VERIFY_CA`,
    /// `VERIFY_IDENTITY`), `ssl-ca`, `ssl-cert`, `ssl-key` (PEM files), `socket`. A password comes
    /// from the URL, from `passwordfile`, or else from `MYSQL_PWD`.
    ///
    /// incumbent's own: `prefix` (of the tables), `passwordfile` (a file with nothing but the
    /// password, read again for each connection), `ssl-hostname` (what the certificate is made
    /// out to, if not to the host), `connect_timeout` and `timeout` (milliseconds).
    ///
    /// # Errors
    ///
    /// Rejected if something in the URL isn't understood; the message names it.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        url::parse(url, process_environment())
    }

    /// What the names of all tables and views start with: `incumbent_` by default.
    ///
    /// # Errors
    ///
    /// Rejected if it is no plain name.
    pub fn prefix(mut self, prefix: &str) -> Result<Self, StoreError> {
        self.names = Names::new(prefix)?;
        Ok(self)
    }

    choices! {
        /// How long a connection may take until it can be used, 10 s by default.
        connect_timeout: up to LONGEST;

        /// How long an exchange may take once it was sent, 10 s by default. Callers usually give up
        /// earlier.
        timeout: up to LONGEST;

        /// What the store is opened for: [`Access::Full`] by default. To look, a user needs `SELECT` on
        /// the tables and no more, and nothing is made.
        access: Access;
    }

    /// The SQL that makes the tables, views and procedures, for those who let no application do that.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        schema::sql(self)
    }

    /// The same for the command line client of the server: `mariadb app < schema.sql`.
    #[must_use]
    pub fn schema_script(&self) -> String {
        schema::script(self)
    }

    /// The SQL that gives this user the least rights that it needs once the tables are there, for
    /// what the store is opened for.
    #[must_use]
    pub fn grants_sql(&self) -> String {
        schema::grants(self)
    }

    /// The SQL that asserts a term inside an application's own transaction; see
    /// [`crate::MysqlStore::fence_sql`].
    #[must_use]
    pub fn fence_sql(&self) -> String {
        fence::sql(self)
    }

    /// The server as messages name it.
    pub(crate) fn server(&self) -> String {
        let Self { endpoint, database, .. } = self;
        match &self.socket {
            Some(socket) => format!("MySQL {socket}/{database}"),
            None => format!("MySQL {endpoint}/{database}"),
        }
    }
}

impl fmt::Debug for MysqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlOptions")
            .field("server", &self.server())
            .field("user", &self.user)
            .field("names", &self.names)
            .field("tls", &self.tls)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
