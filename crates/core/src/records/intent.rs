use serde::{Deserialize, Serialize};

use super::{Canary, Content, Extra, FORMAT};
use crate::keys;
use crate::names::MemberId;
use crate::store::Key;

/// What an operator asks for. Kept in the store, so that it works without push and whoever
/// holds the lease sees it at its next beat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Intent {
    /// The format number.
    pub format: u32,
    /// Unique, and part of the key.
    pub id: String,
    /// What is asked.
    #[serde(alias = "wish")]
    pub ask: Ask,
    /// Whether it was done.
    pub state: IntentState,
    /// Who asked, for people.
    #[serde(default)]
    pub by: String,
    /// When, by that person's wall clock: for display alone.
    #[serde(default)]
    pub at_ms: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Ask {
    /// The holder in this very term shall give the lease up.
    Resign {
        /// The lease's full name.
        lease: String,
        /// The term; a later holder is not meant.
        term: u64,
        /// For whom others shall hold back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        successor: Option<MemberId>,
    },
    /// A duty shall run on this node: nowhere else if `required`. In force while it is open.
    Pin {
        /// The duty.
        duty: String,
        /// The node's name.
        node: String,
        /// Whether it rather doesn't run than elsewhere.
        #[serde(default)]
        required: bool,
    },
    /// A duty shall not run. In force while it is open.
    Pause {
        /// The duty.
        duty: String,
    },
    /// A duty shall move to this node once.
    Move {
        /// The duty.
        duty: String,
        /// The node's name.
        node: String,
    },
    /// A node shall get no more duties. In force while it is open.
    Cordon {
        /// The node's name.
        node: String,
    },
    /// A node shall have no duties. In force while it is open.
    Drain {
        /// The node's name.
        node: String,
    },
    /// Nothing shall move for the sake of evenness. In force while it is open.
    Freeze,
    /// No duty of this family shall move to a newer version. In force while it is open.
    Hold {
        /// The family.
        family: String,
    },
    /// A version shall be tried so. In force while it is open.
    Canary {
        /// Of which family.
        family: String,
        /// How it is tried.
        canary: Canary,
    },
    /// All duties of this family shall move to this version, whatever spoke against it.
    Promote {
        /// The family.
        family: String,
        /// The version; a later one is not meant.
        version: String,
    },
    /// No duty of this family shall run this version.
    Abort {
        /// The family.
        family: String,
        /// The version; a later one is not meant.
        version: String,
    },
}

/// Whether an intent was obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentState {
    /// Not yet.
    Open,
    /// It was; the record may be deleted.
    Done,
    /// What it was about is no more; the record may be deleted.
    Obsolete,
}

impl Intent {
    /// Asks for something that nobody has done yet.
    #[must_use]
    pub fn open(id: String, ask: Ask, by: String, at_ms: u64) -> Self {
        let (format, state, extra) = (FORMAT, IntentState::Open, Extra::new());
        Self { format, id, ask, state, by, at_ms, extra }
    }
}

impl Content for Intent {
    fn format(&self) -> u32 {
        self.format
    }

    fn place(&self) -> Option<Key> {
        Some(keys::intent(&self.id))
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
