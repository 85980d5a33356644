//! What can be chosen about the store.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::Endpoint;

use crate::password::Password;

/// Which etcd, and how it is used. Never shows its password.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdOptions {
    pub(crate) endpoints: Vec<Endpoint>,
    /// Starts with a slash and doesn't end in one; empty for none at all.
    pub(crate) prefix: String,
    pub(crate) user: Option<User>,
    pub(crate) tls: Option<TlsOptions>,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) access: Access,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: Password,
}

/// Whom to trust, and what to show to the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    /// The authorities; those of this machine if none is named.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) identity: Option<Identity>,
}

/// A client's certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

const LONGEST: Duration = Duration::from_secs(60);

impl EtcdOptions {
    /// The options in a URL such as `etcd://10.0.0.1:2379,10.0.0.2:2379/incumbent`.
    ///
    /// `etcds://` encrypts. After the endpoints (port 2379 unless said otherwise) comes the prefix
    /// of all keys, `/incumbent` by default. A user stands before the endpoints, as in
    /// `etcd://app@10.0.0.1`, with `:password` if it must; better are the parameter `passwordfile`
    /// or the environment variable `ETCDCTL_PASSWORD`. The other parameters are `cafile`,
    /// `certfile` and `keyfile` (PEM), `timeout` and `connect_timeout` (milliseconds).
    ///
    /// # Errors
    ///
    /// Rejected if something in the URL isn't understood; the message names it.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        crate::url::parse(url, &|name| std::env::var(name).ok())
    }

    /// What the store is opened for: [`Access::Full`] by default. To look, a user needs to
    /// read the keys and no more.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The commands that make a user with the least rights for what the store is opened for. Keys
    /// need not be made.
    #[must_use]
    pub fn rights(&self) -> String {
        let user = self.user.as_ref().map_or("incumbent", |user| user.name.as_str());
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let (user, prefix) = (quoted(user), quoted(&format!("{}/", self.prefix)));
        let (role, rights) = match self.access {
            Access::Look => ("incumbent-look", "read"),
            _ => ("incumbent", "readwrite"),
        };
        format!(
            "etcdctl role add {role}\n\
             etcdctl role grant-permission {role} --prefix=true {rights} {prefix}\n\
             etcdctl user add {user}\n\
             etcdctl user grant-role {user} {role}\n"
        )
    }

    /// How long an exchange may take, 5 s by default; the library gives up earlier where its own
    /// request time-out is shorter.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long connecting to one endpoint may take before the next is tried, 2 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// What all keys start with, such as `/incumbent`.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How messages name the place.
    pub(crate) fn place(&self) -> String {
        let endpoints: Vec<String> = self.endpoints.iter().map(ToString::to_string).collect();
        format!("etcd at {}", endpoints.join(","))
    }

    pub(crate) fn checked(self) -> Result<Self, StoreError> {
        for (name, span) in [("timeout", self.timeout), ("connect_timeout", self.connect_timeout)] {
            if span.is_zero() || span > LONGEST {
                return Err(StoreError::rejected(format!(
                    "{name}={} is not between 1 and {} ms: choose at most a third of the ttl",
                    span.as_millis(),
                    LONGEST.as_millis()
                )));
            }
        }
        Ok(self)
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("user", &self.user.as_ref().map(|user| &user.name))
            .field("tls", &self.tls)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}
