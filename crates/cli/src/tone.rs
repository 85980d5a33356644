//! What news are like, wherever they are told.

use anstyle::Style;

use crate::style::{BAD, DIM, GOOD, HEAD, ODD, PLAIN, WORK};

/// What news are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Somebody leads.
    Good,
    /// Duties run somewhere.
    Work,
    /// Somebody leads no more, joins or leaves.
    Plain,
    /// Something that deserves a look.
    Odd,
    /// Something that should not be.
    Bad,
    /// What this program itself does.
    Deed,
    /// What is there for completeness.
    Faint,
}

impl Tone {
    /// How it looks in a line of text.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Good => GOOD,
            Self::Work => WORK,
            Self::Plain => PLAIN,
            Self::Odd => ODD,
            Self::Bad => BAD,
            Self::Deed => HEAD,
            Self::Faint => DIM,
        }
    }
}
