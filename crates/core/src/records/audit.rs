use serde::{Deserialize, Serialize};

use super::{Content, Extra, FORMAT};

/// How many acts a cluster remembers.
pub const MAX_ACTS: usize = 256;

/// What operators did of late, through a server that knows who they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Audit {
    /// The format number.
    pub format: u32,
    /// The last acts, oldest first.
    #[serde(default)]
    pub acts: Vec<Act>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One act of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Act {
    /// When, by the wall clock of the server that was asked.
    pub at_ms: u64,
    /// Who asked, as far as the server knows.
    pub who: String,
    /// From where.
    pub from: String,
    /// What was asked.
    pub act: String,
    /// Of what.
    pub target: String,
    /// With which details.
    #[serde(default)]
    pub detail: String,
    /// What became of it.
    #[serde(default)]
    pub outcome: String,
}

impl Audit {
    /// That of a cluster in which nobody did anything yet.
    #[must_use]
    pub fn fresh() -> Self {
        Self { format: FORMAT, acts: Vec::new(), extra: Extra::new() }
    }

    /// Remembers an act, and forgets the oldest past [`MAX_ACTS`] or `most` bytes.
    pub fn remember(&mut self, act: Act, most: usize) {
        self.acts.push(act);
        let over = self.acts.len().saturating_sub(MAX_ACTS);
        self.acts.drain(..over);
        while self.acts.len() > 1 && self.bytes().len() > most {
            let half = self.acts.len().div_ceil(2);
            self.acts.drain(..half.min(self.acts.len() - 1));
        }
    }
}

impl Content for Audit {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_acts_are_forgotten_past_the_bounds() {
        let mut audit = Audit::fresh();
        for at_ms in 0..600 {
            audit.remember(Act { at_ms, ..Act::default() }, 1 << 20);
        }
        assert_eq!((audit.acts.len(), audit.acts.last().unwrap().at_ms), (MAX_ACTS, 599));
        audit.remember(Act { at_ms: 600, ..Act::default() }, 4096);
        assert!(audit.bytes().len() <= 4096);
        assert_eq!(audit.acts.last().unwrap().at_ms, 600);
    }
}
