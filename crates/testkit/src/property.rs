use std::fmt;
use std::future::Future;
use std::pin::Pin;

use incumbent_core::store::Capabilities;

use crate::{Context, Violation};

/// The future that a property runs as.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Violation>> + Send>>;

/// Something that every store must have, or every store that declares a capability.
#[derive(Clone, Copy)]
pub struct Property {
    /// Its name, as reports show it.
    pub name: &'static str,
    /// What holds, in one line.
    pub about: &'static str,
    /// What a store must be able to do for the property to mean anything.
    pub needs: Need,
    /// Whether it also holds behind faults.
    pub under_faults: bool,
    /// Tries it.
    pub run: fn(Context) -> Running,
}

/// What a property needs of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing that isn't every store's.
    Nothing,
    /// Hints.
    Push,
    /// Ages by the store's own clock.
    Clock,
    /// Records that other processes share.
    Shared,
}

impl Need {
    /// Why a store with these capabilities is not asked, if it isn't.
    #[must_use]
    pub fn missing(self, capabilities: &Capabilities) -> Option<&'static str> {
        match self {
            Self::Push if !capabilities.push => Some("the store declares no push"),
            Self::Clock if !capabilities.clock => Some("the store declares no clock"),
            Self::Shared if !capabilities.shared => {
                Some("the store declares that no other process shares its records")
            }
            Self::Nothing | Self::Push | Self::Clock | Self::Shared => None,
        }
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Property").field("name", &self.name).finish_non_exhaustive()
    }
}
