//! Names that people give, and ids that we draw.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::keys::{DUTY, LEADER, RESERVED, SLOT};
use crate::random::Random;

/// The longest name in bytes.
pub const MAX_NAME: usize = 4096;

/// Why a name was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty, or nothing but blanks.
    #[error("a {what} name is empty or blank: give it at least one character that can be seen")]
    Empty {
        /// What was to be named.
        what: &'static str,
    },
    /// It is longer than [`MAX_NAME`].
    #[error("a {what} name has {bytes} bytes, and {MAX_NAME} is the most: shorten \"{start}…\"")]
    TooLong {
        /// What was to be named.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How it begins.
        start: String,
    },
    /// It has a control character.
    #[error("the {what} name {name:?} has a control character: use printable ones")]
    Control {
        /// What was to be named.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A family's name has a slash, which separates it from the duty's.
    #[error("the family name {name:?} has a slash: use another character, such as \"-\"")]
    Slash {
        /// The name.
        name: String,
    },
    /// A duty is named without its family.
    #[error("the duty {name:?} has no family: name it as family/duty, such as \"work/mail\"")]
    NoFamily {
        /// The name.
        name: String,
    },
    /// It begins with `incumbent/`, which is kept for incumbent itself.
    #[error("the lease name {name:?} is reserved: names may not begin with \"incumbent/\"")]
    Reserved {
        /// The name.
        name: String,
    },
}

/// Checks what a person gave as a name.
///
/// # Errors
/// Says what is wrong with it and what would be right.
pub fn check(what: &'static str, name: &str) -> Result<(), NameError> {
    // What can't be seen at all can't be told from nothing in any table or message.
    if name.chars().all(is_unseen) {
        return Err(NameError::Empty { what });
    }
    if name.len() > MAX_NAME {
        let start = name.chars().take(32).collect();
        return Err(NameError::TooLong { what, bytes: name.len(), start });
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::Control { what, name: name.chars().take(64).collect() });
    }
    Ok(())
}

/// Whether a character leaves nothing on the screen: blanks, and what only says how others are shown.
fn is_unseen(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// What a lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseKind {
    /// Whatever the application wants one of.
    Plain,
    /// One of several of which whoever wants one takes any.
    Slot,
    /// A duty, which is wanted by one incarnation at a time: whichever the leader asks.
    Duty,
    /// Leading the cluster.
    Leader,
}

impl LeaseKind {
    /// The kind of the lease with this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            LEADER => Self::Leader,
            _ if name.starts_with(DUTY) => Self::Duty,
            _ if name.starts_with(SLOT) => Self::Slot,
            _ => Self::Plain,
        }
    }

    /// The duty, `family/name`, that runs under the lease with this name.
    #[must_use]
    pub fn duty(name: &str) -> Option<&str> {
        name.strip_prefix(DUTY).filter(|duty| duty.contains('/'))
    }
}

/// The name of a lease: `scheduler`, `shard-17`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseName(Arc<str>);

impl LeaseName {
    /// A lease's name as an application gives it.
    ///
    /// # Errors
    /// If the name is empty, too long, has control characters or is reserved.
    pub fn new(name: &str) -> Result<Self, NameError> {
        check("lease", name)?;
        if name.starts_with(RESERVED) {
            return Err(NameError::Reserved { name: name.chars().take(64).collect() });
        }
        Ok(Self(name.into()))
    }

    /// The lease of the cluster's leader.
    #[must_use]
    pub fn leader() -> Self {
        Self(LEADER.into())
    }

    /// The lease of one slot of several. No application's own lease is called that, and no slot of
    /// another name.
    ///
    /// # Errors
    /// If the name is empty, too long or has control characters.
    pub fn slot(name: &str, number: u16) -> Result<Self, NameError> {
        check("slot", name)?;
        let text = format!("{SLOT}{name}/{number}");
        check("slot", &text)?;
        Ok(Self(text.into()))
    }

    /// The lease of a slot from its full name, as operators see it; nothing if it isn't one.
    #[must_use]
    pub fn parse_slot(text: &str) -> Option<Self> {
        let (name, number) = text.strip_prefix(SLOT)?.rsplit_once('/')?;
        let lease = Self::slot(name, number.parse().ok()?).ok()?;
        // Another spelling of the number would be another lease.
        (lease.as_str() == text).then_some(lease)
    }

    /// The lease without which a duty, `family/name`, doesn't run.
    #[must_use]
    pub fn duty(duty: &str) -> Self {
        Self(format!("{DUTY}{duty}").into())
    }

    /// A name as a record has it, whichever kind it is of.
    pub(crate) fn reserved(name: &str) -> Self {
        Self(name.into())
    }

    /// What the lease is for.
    #[must_use]
    pub fn kind(&self) -> LeaseKind {
        LeaseKind::of(&self.0)
    }

    /// Whether a duty runs under this lease.
    #[must_use]
    pub fn is_duty(&self) -> bool {
        self.kind() == LeaseKind::Duty
    }

    /// The name's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for LeaseName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One incarnation of a node. Drawn at random at each join, so that it never comes back.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberId(Arc<str>);

impl MemberId {
    /// Draws a new id: 128 random bits, in hexadecimal.
    pub fn draw(random: &mut Random) -> Self {
        Self(format!("{:016x}{:016x}", random.number(), random.number()).into())
    }

    /// An id from its text, as an operator types it or a record holds it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(..8).unwrap_or(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_nobody_elses_leases() {
        let slot = LeaseName::slot("importers", 2).unwrap();
        assert_eq!(slot.as_str(), "incumbent/slot/importers/2");
        assert!(LeaseName::new(slot.as_str()).is_err(), "no application's lease is called that");
        assert_ne!(LeaseName::slot("a/1", 2).unwrap(), LeaseName::slot("a", 1).unwrap());
        assert_eq!(LeaseName::parse_slot(slot.as_str()), Some(slot));
        for other in ["importers", "incumbent/slot/a", "incumbent/slot/a/02", "incumbent/slot//1"] {
            assert_eq!(LeaseName::parse_slot(other), None, "{other}");
        }
        assert!(LeaseName::slot("", 0).is_err());
        assert!(LeaseName::slot(&"x".repeat(MAX_NAME), 0).is_err());
    }

    #[test]
    fn o40_blanks_are_no_name() {
        let unseen = ["\u{202e}", "\u{200b}", " \u{2060}\u{feff}", "\u{3164}", "\u{e0041}"];
        for blank in ["", " ", "  \u{a0}\u{3000}"].into_iter().chain(unseen) {
            let refused = check("node", blank);
            assert!(matches!(refused, Err(NameError::Empty { what: "node" })), "{blank:?}");
        }
        assert!(check("node", " a").is_ok() && check("node", "\u{200f}א").is_ok());
    }
}
