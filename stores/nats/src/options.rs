//! How to reach the server and which bucket to use.

use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Secret, TlsFiles, TlsNames, choices, process_environment};

use crate::bucket;
use crate::keys;
use crate::login::Login;

/// Where the records are and how to get there. Made from a URL or from the parts.
///
/// Its `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// Each `host:port`.
    pub(crate) servers: Vec<String>,
    /// Whether the connection has to be encrypted. It is anyway where the server asks for it.
    pub(crate) tls: bool,
    pub(crate) tls_first: bool,
    pub(crate) files: TlsFiles,
    pub(crate) login: Login,
    pub(crate) bucket: String,
    pub(crate) replicas: u32,
    pub(crate) inbox: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) hints: bool,
    pub(crate) access: Access,
}

const LONGEST: Duration = Duration::from_secs(60);

impl NatsOptions {
    /// A server (`host:port`) without TLS and without a login, with the defaults for all else.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            servers: vec![server.into()],
            tls: false,
            tls_first: false,
            files: TlsFiles::none(TlsNames::USUAL),
            login: Login::None,
            bucket: "incumbent".to_owned(),
            replicas: 1,
            inbox: "_INBOX".to_owned(),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            hints: true,
            access: Access::Full,
        }
    }

    /// The options in a URL: `nats://user:password@host:port,host:port?option=value`, or
    /// `tls://` where nothing may be sent in the clear. A token takes the place of user and
    /// password.
    ///
    /// | option | meaning |
    /// | --- | --- |
    /// | `bucket` | the key-value bucket: `incumbent` |
    /// | `replicas` | how many servers keep the bucket if it is made: 1 |
    /// | `passwordfile`, `tokenfile` | a file with the password or the token |
    /// | `creds` | a credentials file: a user's JWT and seed |
    /// | `nkey` | a file with the seed of a user's key |
    /// | `cafile` | the authorities to trust; those of the machine by default |
    /// | `certfile`, `keyfile` | the client's certificate and key |
    /// | `tls_first` | `true` where the server shakes hands before it says anything |
    /// | `inbox` | what the subjects of answers start with: `_INBOX` |
    /// | `connect_timeout`, `timeout` | milliseconds for a connection (10000) and an answer (5000) |
    /// | `hints` | `push`, or `off` where the hint subjects aren't allowed |
    ///
    /// All files are read again for each connection. Without a login there, `NATS_CREDS` and
    /// `NATS_PASSWORD` (for the user in the URL) are taken, as the `nats` command does.
    ///
    /// # Errors
    ///
    /// Rejected if something in the URL isn't understood; the message names it, and never a
    /// secret.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        crate::url::parse(url, process_environment())
    }

    /// One more server (`host:port`) of the same NATS cluster.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Logs in with this user and password.
    #[must_use]
    pub fn password(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Login::User(user.into(), Secret::Given(password.into()));
        self
    }

    /// Logs in with this token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.login = Login::Token(Secret::Given(token.into()));
        self
    }

    /// Logs in with a credentials file.
    #[must_use]
    pub fn credentials(mut self, path: impl Into<PathBuf>) -> Self {
        self.login = Login::Credentials(path.into());
        self
    }

    choices! {
        /// The bucket: `incumbent` by default.
        bucket: Text;

        /// How long it may take to connect and log in: 10 s by default, 60 s at most.
        connect_timeout: up to LONGEST;

        /// How long an answer may take before its outcome is called unknown: 5 s by default, 60 s at
        /// most. Nodes wait for no more than a third of their ttl anyway.
        timeout: up to LONGEST;

        /// Whether changes are told on plain subjects, as they are by default.
        hints: bool;

        /// What the store is opened for: [`Access::Full`] by default. To look, a user
        /// needs to ask for the bucket and its values and no more, and no bucket is made.
        access: Access;
    }

    /// How many servers keep the bucket if it has to be made: 1 by default, 5 at most.
    #[must_use]
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = replicas.clamp(1, 5);
        self
    }

    /// The command that makes the bucket, for those who let no application do that.
    #[must_use]
    pub fn schema_command(&self) -> String {
        bucket::command(self)
    }

    /// The least rights that a user of this store needs, as the server's configuration has them.
    #[must_use]
    pub fn permissions(&self) -> String {
        bucket::permissions(self)
    }

    /// The same options, or why they can't be used.
    pub(crate) fn checked(self) -> Result<Self, StoreError> {
        keys::check_bucket(&self.bucket)?;
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.$".contains(&byte);
        let tokens = || self.inbox.split('.');
        if !self.inbox.bytes().all(legal) || tokens().any(str::is_empty) {
            return Err(StoreError::rejected(format!(
                "inbox={:?} is not a subject: use letters, digits, _ and - with dots between",
                self.inbox
            )));
        }
        Ok(self)
    }

    /// The servers as messages name them.
    pub(crate) fn shown(&self) -> String {
        format!("NATS {} (bucket {})", self.servers.join(","), self.bucket)
    }
}
