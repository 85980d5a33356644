use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Content, Extra, FORMAT};
use crate::keys;
use crate::names::MemberId;
use crate::settings::MAX_TTL;
use crate::store::Key;

/// The one record that keeps a member alive, and from which all its leases hang.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemberRecord {
    /// The format number.
    pub format: u32,
    /// Whose record this is.
    pub id: MemberId,
    /// Where in its life the member is.
    pub state: MemberState,
    /// Counts attempts to beat, so that a member recognises its own.
    pub beat: u64,
    /// How long others wait for this member. Never changes, closing keeps it.
    pub ttl_ms: u64,
    /// How long after this beat the next one is sent.
    pub due_ms: u64,
    /// How often the member's profile changed, so that the leader knows when to read it again.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub profile: u64,
    /// How often the member's report changed.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub report: u64,
    /// One more than how many leases the member has freed, so that who waits for many of them knows when
    /// to read them; 0 if it doesn't say.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub freed: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Where in its life a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// It beats.
    Alive,
    /// It left by itself after its work had stopped: its leases are free at once.
    Left,
    /// It was not heard of for its ttl: its leases are free at once.
    Expired,
    /// It was thrown out: its leases are free a ttl after that was seen.
    Evicted,
}

impl MemberState {
    /// The word that records and people use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Left => "left",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
        }
    }

    /// Whether the member's trust was over before it was closed. Then it never trusts again, even if
    /// the store goes back to when it was alive, and nothing but time is lost with the closing.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Left | Self::Expired => true,
            Self::Alive | Self::Evicted => false,
        }
    }
}

impl MemberRecord {
    /// The record of a member that is about to join.
    #[must_use]
    pub fn joining(id: MemberId, ttl: Duration, due: Duration) -> Self {
        Self {
            format: FORMAT,
            id,
            state: MemberState::Alive,
            beat: 1,
            ttl_ms: millis(ttl),
            due_ms: millis(due),
            profile: 0,
            report: 0,
            freed: 0,
            extra: Extra::new(),
        }
    }

    /// The closed record of a member that has none. It counts no beat, by which that member tells
    /// that the store had forgotten it.
    #[must_use]
    pub fn forgotten(id: MemberId, ttl: Duration, state: MemberState) -> Self {
        Self { beat: 0, state, ..Self::joining(id, ttl, ttl / 3) }
    }

    /// How long others wait for this member.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    /// How long after this beat the next one is sent; a senseless claim counts as ttl/3.
    #[must_use]
    pub fn due(&self) -> Duration {
        let due = Duration::from_millis(self.due_ms);
        if due.is_zero() || due > self.ttl() / 2 { self.ttl() / 3 } else { due }
    }

    /// The same record in another state.
    #[must_use]
    pub fn closed(&self, state: MemberState) -> Self {
        Self { state, ..self.clone() }
    }
}

impl Content for MemberRecord {
    fn format(&self) -> u32 {
        self.format
    }

    fn place(&self) -> Option<Key> {
        Some(keys::member(&self.id))
    }

    fn belongs_under(&self, key: &Key) -> bool {
        keys::Kind::Member.is_key_of(key, self.id.as_str())
    }

    fn check(&self) -> Result<(), String> {
        if self.ttl().is_zero() || self.ttl() > MAX_TTL {
            return Err(format!("ttl of {} ms is out of bounds", self.ttl_ms));
        }
        Ok(())
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
