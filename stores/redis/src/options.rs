//! What can be chosen about the store.

use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Endpoint, Secret, TlsFiles, choices, process_environment};

use crate::keys;

/// Which server, and how it is used. Never shows its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisOptions {
    pub(crate) endpoint: Endpoint,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) username: Option<String>,
    pub(crate) password: Secret,
    pub(crate) database: i64,
    pub(crate) prefix: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) wait: u32,
    pub(crate) eviction: Eviction,
    pub(crate) hints: bool,
    pub(crate) access: Access,
}

/// What to do about a server that may evict records to save memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Eviction {
    /// Such a server is refused when the store is opened.
    Refuse,
    /// It is used all the same: leases and their terms may vanish at any time.
    Allow,
}

const LONGEST: Duration = Duration::from_secs(60);

impl RedisOptions {
    /// A server without TLS and without a password, with the defaults for all else.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            endpoint: Endpoint { host: host.into(), port },
            tls: None,
            username: None,
            password: Secret::None,
            database: 0,
            prefix: "incumbent".to_owned(),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            wait: 0,
            eviction: Eviction::Refuse,
            hints: true,
            access: Access::Full,
        }
    }

    /// The options in a URL: `redis://user:password@host:port/database?option=value`, or
    /// `rediss://` for TLS. All but the host may be left out.
    ///
    /// | option | meaning |
    /// | --- | --- |
    /// | `prefix` | what all keys start with: `incumbent` |
    /// | `passwordfile` | a file with the password, read again for each connection |
    /// | `cafile` | the authorities to trust, for `rediss:`; those of the machine by default |
    /// | `certfile`, `keyfile` | the client's certificate and key, for `rediss:` |
    /// | `connect_timeout`, `timeout` | milliseconds for a connection (10000) and an answer (5000) |
    /// | `wait` | how many replicas must have a write before it counts: 0 |
    /// | `eviction` | `refuse` or `allow` a server that may evict records |
    /// | `hints` | `push`, or `off` where pub/sub isn't allowed |
    ///
    /// Without a password there, `REDISCLI_AUTH` is taken, as `redis-cli` does.
    ///
    /// # Errors
    ///
    /// Rejected if something in the URL isn't understood; the message names it, and never the
    /// password.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        crate::url::parse(url, process_environment())
    }

    /// Logs in with this name and password.
    #[must_use]
    pub fn login(mut self, username: Option<&str>, password: impl Into<String>) -> Self {
        self.username = username.map(str::to_owned);
        self.password = Secret::Given(password.into());
        self
    }

    /// The number of the database: 0 by default.
    #[must_use]
    pub fn database(mut self, database: u32) -> Self {
        self.database = database.into();
        self
    }

    choices! {
        /// What the names of all keys start with: `incumbent` by default.
        prefix: Text;

        /// How long it may take to connect and log in: 10 s by default, 60 s at most.
        connect_timeout: up to LONGEST;

        /// How long an answer may take before its outcome is called unknown: 5 s by default, 60 s at
        /// most. Nodes wait for no more than a third of their ttl anyway.
        timeout: up to LONGEST;

        /// How many replicas must have a write before it counts: 0 by default. With fewer in time the
        /// outcome is unknown. Each write then takes a round trip to the slowest of them longer.
        wait: u32;

        /// What to do about a server that may evict records: [`Eviction::Refuse`] by default.
        eviction: Eviction;

        /// Whether changes are told by pub/sub, as they are by default.
        hints: bool;

        /// What the store is opened for: [`Access::Full`] by default. To look, a user needs the
        /// right to read the keys, to run scripts and to subscribe, and no other.
        access: Access;
    }

    /// The command that makes a user with the least rights for what the store is opened for, and
    /// takes from one that is there all others.
    #[must_use]
    pub fn acl(&self) -> String {
        let user = self.username.as_deref().unwrap_or("incumbent");
        let prefix = &self.prefix;
        let wait = if self.wait > 0 { " +wait" } else { "" };
        let select = if self.database > 0 { " +select" } else { "" };
        let (writes, publish) = match self.access {
            Access::Look => ("", ""),
            _ => (" +hset +hdel +zadd +zrem", " +publish"),
        };
        let hints = if self.hints { " +subscribe +unsubscribe" } else { "" };
        let publish = if self.hints { publish } else { "" };
        format!(
            "ACL SETUSER {user} reset resetchannels on '>PASSWORD' '~{{{prefix}:*' \
             '&{{{prefix}:*' +evalsha +eval +hget +hmget +hexists +zrangebylex{writes} +time +ping \
             +config|get +client|setname{publish}{hints}{select}{wait}"
        )
    }

    /// The same options, or why they can't be used.
    pub(crate) fn checked(self) -> Result<Self, StoreError> {
        keys::check_prefix(&self.prefix)?;
        if self.endpoint.host.is_empty() {
            return Err(StoreError::rejected("no Redis host was named: write redis://host:6379"));
        }
        Ok(self)
    }

    /// The server as messages name it.
    pub(crate) fn server(&self) -> String {
        format!("Redis {}/{}", self.endpoint, self.database)
    }
}
