//! Who somebody is by the certificate of a connection.
#![cfg_attr(not(feature = "tls"), allow(dead_code, reason = "nobody shows one without encryption"))]

use std::fmt;
use std::sync::Arc;

use crate::access::Role;

/// Somebody whose certificate an authority vouches for.
pub(crate) struct Certified {
    /// For people: the certificate's subject.
    pub(crate) subject: String,
    /// All that may be given a role: `cn:`, `dns:`, `email:` and `uri:` with what follows.
    pub(crate) names: Vec<String>,
    pub(crate) roles: Arc<dyn Roles>,
}

/// Who says what certificates are for. It may change its mind while a connection lasts.
pub(crate) trait Roles: Send + Sync {
    fn standing(&self, names: &[String]) -> Standing;
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody has said who may do what.
    Unsaid,
    /// It has this role.
    Has(Role),
    /// Others have roles.
    HasNone,
}

impl Certified {
    /// What it is for at this moment.
    pub(crate) fn standing(&self) -> Standing {
        self.roles.standing(&self.names)
    }
}

impl fmt::Debug for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certified").field("names", &self.names).finish_non_exhaustive()
    }
}
