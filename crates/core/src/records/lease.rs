use serde::{Deserialize, Serialize};

use super::{Content, Extra, FORMAT};
use crate::keys;
use crate::names::{LeaseKind, LeaseName, MemberId};
use crate::store::Key;

/// How many changes of hands a lease remembers.
pub const MAX_CHANGES: usize = 16;

/// A named exclusive right. Never deleted: its term would start again, and the fence with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// The format number.
    pub format: u32,
    /// The full name; the key may hold only its beginning and a hash.
    pub name: String,
    /// Grows by one each time the lease changes hands: the fencing token.
    pub term: u64,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Whatever the holder wants others to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The member for whom others hold back a little, after a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<MemberId>,
    /// The store went back to this record, and had shown terms up to this one before: the next one
    /// is far above it. Written by who knows, for those who don't.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub lost: u64,
    /// The last changes, oldest first.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Who has a lease and where it can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// The member from whose record the lease hangs.
    pub member: MemberId,
    /// Its node's name, for people.
    pub node: String,
    /// Where it can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The attempt that wrote this, unique to it: by this, and by nothing else, a holder that never
    /// heard of its success recognises it. Versions before 0.2 write none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// It was taken in a store that had forgotten the lease. If its holder ends without freeing it,
    /// the store may have forgotten once more, and somebody else may still lead in what it lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
    /// How long after this was sent its member was going to beat next, so that who sees the change of
    /// hands knows when to look for that beat; 0 if it doesn't say. It decides nothing else.
    #[serde(default, skip_serializing_if = "is_unsaid")]
    pub due_ms: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_unsaid(due_ms: &u32) -> bool {
    *due_ms == 0
}

/// One change of hands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Change {
    /// The term that began or ended.
    pub term: u64,
    /// Which of the two, and why.
    pub kind: ChangeKind,
    /// The node that wrote this.
    pub node: String,
    /// Wall-clock milliseconds since 1970 on that node: for display alone.
    pub at_ms: u64,
}

/// What a change of hands was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Taken while it was free.
    Taken,
    /// Taken after the holder's member had left.
    Inherited,
    /// Taken after the holder's member had expired.
    Expired,
    /// Taken a ttl after the holder's member had been evicted.
    Evicted,
    /// Freed by its holder.
    Freed,
}

impl ChangeKind {
    /// The word that records and people use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Inherited => "inherited",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::Freed => "freed",
        }
    }
}

impl LeaseRecord {
    /// Whether the store is known to have forgotten terms above this one, or another holder of it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost > 0 && self.lost >= self.term
    }

    /// Whether nobody holds it because who is named by what the store went back to has said that it
    /// doesn't, and not because it was freed.
    #[must_use]
    pub fn is_disowned(&self) -> bool {
        let freed = self.changes.last().is_some_and(|last| last.kind == ChangeKind::Freed);
        self.is_lost() && self.holder.is_none() && !freed
    }

    /// A lease that nobody has had yet.
    #[must_use]
    pub fn fresh(name: &LeaseName) -> Self {
        Self::free(name.as_str().to_owned(), 0)
    }

    /// A lease of this full name that nobody holds, and whose last term was this.
    #[must_use]
    pub fn free(name: String, term: u64) -> Self {
        Self {
            format: FORMAT,
            name,
            term,
            holder: None,
            payload: None,
            successor: None,
            lost: 0,
            changes: Vec::new(),
            extra: Extra::new(),
        }
    }

    /// Remembers a change, and forgets the oldest past [`MAX_CHANGES`]; of duties, of which there
    /// are many, past two.
    pub fn remember(&mut self, change: Change) {
        self.changes.push(change);
        let duty = LeaseKind::of(&self.name) == LeaseKind::Duty;
        let most = if duty { 2 } else { MAX_CHANGES };
        let over = self.changes.len().saturating_sub(most);
        self.changes.drain(..over);
    }

    /// When the present holder took it, by that holder's wall clock.
    #[must_use]
    pub fn since_ms(&self) -> Option<u64> {
        let taken = |change: &&Change| change.kind != ChangeKind::Freed && change.term == self.term;
        self.changes.iter().rev().find(taken).map(|change| change.at_ms)
    }
}

impl Content for LeaseRecord {
    fn format(&self) -> u32 {
        self.format
    }

    fn place(&self) -> Option<Key> {
        Some(keys::lease(&LeaseName::reserved(&self.name)))
    }

    fn belongs_under(&self, key: &Key) -> bool {
        keys::Kind::Lease.is_key_of(key, &self.name)
    }

    fn check(&self) -> Result<(), String> {
        if self.holder.is_some() && self.term == 0 {
            return Err("it is held in term 0".to_owned());
        }
        if self.term > u64::MAX / 2 {
            return Err(format!("term {} leaves no room for more", self.term));
        }
        super::check_term(self.lost)
    }
}
