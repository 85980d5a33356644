use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, bail};

/// What one process wrote down, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Which process.
    pub process: String,
    /// What it wrote down.
    pub entries: Vec<Entry>,
}

/// One line. Moments are nanoseconds of CLOCK_BOOTTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It was told that it leads in this term.
    Elected {
        /// A moment after it was told.
        at: u64,
        /// Which term.
        term: u64,
    },
    /// It asked whether it leads.
    Asked {
        /// A moment before it asked.
        before: u64,
        /// A moment after it was answered.
        after: u64,
        /// About which term.
        term: u64,
        /// What the answer was.
        held: bool,
        /// Until when it would have been answered with yes, as far as was known after that.
        until: u64,
    },
    /// It was told that it leads no more.
    Lost {
        /// A moment after it was told.
        at: u64,
        /// Which term.
        term: u64,
        /// Why it was lost.
        why: Loss,
    },
}

/// Why a term ended, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Trust ran out, and not before its time.
    CannotTell,
    /// Anything else.
    Other,
}

impl History {
    /// Reads what a process wrote down. A last line that is cut off, because the process was
    /// killed while it wrote, is left out.
    ///
    /// # Errors
    /// If any other line makes no sense.
    pub fn read(process: &str, text: &str) -> anyhow::Result<Self> {
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
        let entries = whole
            .lines()
            .map(|line| line.parse().with_context(|| format!("{process}: {line:?}")))
            .collect::<anyhow::Result<Vec<Entry>>>()?;
        Ok(Self { process: process.to_owned(), entries })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elected { at, term } => write!(f, "elected {at} {term}"),
            Self::Asked { before, after, term, held, until } => {
                write!(f, "asked {before} {after} {term} {} {until}", u8::from(*held))
            }
            Self::Lost { at, term, why } => {
                write!(f, "lost {at} {term} {}", u8::from(*why == Loss::CannotTell))
            }
        }
    }
}

impl FromStr for Entry {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let (word, numbers) = line.split_once(' ').context("a word and numbers")?;
        let numbers = numbers
            .split(' ')
            .map(|number| number.parse().context("a number"))
            .collect::<anyhow::Result<Vec<u64>>>()?;
        Ok(match (word, numbers.as_slice()) {
            ("elected", &[at, term]) => Self::Elected { at, term },
            ("asked", &[before, after, term, held, until]) => {
                Self::Asked { before, after, term, held: held == 1, until }
            }
            ("lost", &[at, term, why]) => {
                let why = if why == 1 { Loss::CannotTell } else { Loss::Other };
                Self::Lost { at, term, why }
            }
            _ => bail!("no entry looks like this"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let entries = vec![
            Entry::Elected { at: 1, term: 7 },
            Entry::Asked { before: 2, after: 3, term: 7, held: true, until: 9 },
            Entry::Lost { at: 10, term: 7, why: Loss::CannotTell },
        ];
        let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        let cut = format!("{text}asked 11 1");
        let history = History { process: "a".to_owned(), entries };
        assert_eq!(History::read("a", &text).unwrap(), history);
        assert_eq!(History::read("a", &cut).unwrap(), history);
        assert!(History::read("a", "hoped 1 2\n").is_err());
    }
}
