//! What can be chosen about the store.

use std::fmt;
use std::time::Duration;

use incumbent_core::store::{Access, StoreError};
use incumbent_store_common::{Endpoint, Secret, TlsFiles, choices, process_environment};

/// Which etcd, and how it is used. Never shows its password.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdOptions {
    pub(crate) endpoints: Vec<Endpoint>,
    /// Starts with a slash and doesn't end in one; empty for none at all.
    pub(crate) prefix: String,
    pub(crate) user: Option<User>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) access: Access,
}

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: Secret,
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
        crate::url::parse(url, process_environment())
    }

    choices! {
        /// What the store is opened for: [`Access::Full`] by default. To look, a user needs to
        /// read the keys and no more.
        access: Access;

        /// How long an exchange may take, 5 s by default and 60 s at most; the library gives up earlier
        /// where its own request time-out is shorter.
        timeout: up to LONGEST;

        /// How long a connection to one endpoint may take until it can be used, 10 s by default and 60 s
        /// at most. The next endpoint is tried beside it after half a second.
        connect_timeout: up to LONGEST;
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
