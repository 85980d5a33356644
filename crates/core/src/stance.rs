//! How a node stands for a lease, and who goes first.

use std::time::Duration;

/// How a node stands for a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stance {
    /// Whether it would take the lease; if not it only watches.
    pub electable: bool,
    /// Who goes first when the lease is free.
    pub preference: Preference,
    /// What others can read beside the holder's name.
    pub payload: Option<String>,
}

impl Default for Stance {
    fn default() -> Self {
        Self { electable: true, preference: Preference::None, payload: None }
    }
}

/// Who goes first when a lease is free. Only ever a delay of at most ttl/3, so that a dead
/// favourite keeps nobody waiting for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preference {
    /// Whoever comes first.
    None,
    /// From 0, which waits longest, to 255, which doesn't wait.
    Priority(u8),
    /// The longer a node has been a member, the less it waits.
    LongestRunning,
}

impl Preference {
    /// How long to hold back from a lease that was seen free.
    pub(crate) fn delay(self, ttl: Duration, member_for: Duration) -> Duration {
        let most = ttl / 3;
        match self {
            Self::None => Duration::ZERO,
            Self::Priority(priority) => most * u32::from(u8::MAX - priority) / u32::from(u8::MAX),
            Self::LongestRunning => {
                let share = ttl.as_secs_f64() / (ttl + member_for).as_secs_f64();
                most.mul_f64(share.clamp(0.0, 1.0))
            }
        }
    }
}
