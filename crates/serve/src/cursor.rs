//! Which state of a lease somebody has seen: what a long poll waits after.

use std::fmt;

use incumbent::LeaseState;

use crate::problem::Problem;

/// A term, and whether it is over. Later ones are greater, unless the store forgot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    term: u64,
    free: bool,
}

impl Cursor {
    pub(crate) fn of(state: &LeaseState) -> Self {
        let free = state.leader.is_none() && state.unreadable.is_none();
        Self { term: state.term, free }
    }

    /// Reads one that a client was given. Any other would be answered at once, again and again.
    pub(crate) fn read(text: &str) -> Result<Self, Problem> {
        let (term, free) = match text.strip_suffix(".free") {
            Some(term) => (term, true),
            None => (text, false),
        };
        let wrong = |_| Problem::bad("after is the cursor of a lease, such as 7 or 7.free");
        Ok(Self { term: term.parse().map_err(wrong)?, free })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let free = if self.free { ".free" } else { "" };
        write!(f, "{}{free}", self.term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_in_the_order_of_what_they_name() {
        let read = |text| Cursor::read(text).unwrap();
        let texts = ["0.free", "1", "1.free", "2", "10"];
        let cursors: Vec<Cursor> = texts.into_iter().map(read).collect();
        assert!(cursors.is_sorted());
        assert!(cursors.iter().map(Cursor::to_string).eq(texts));
        for wrong in ["", ".free", "x", "1.5", "1.free.free", "-1"] {
            assert_eq!(Cursor::read(wrong).unwrap_err().code(), "bad-request", "{wrong}");
        }
    }
}
