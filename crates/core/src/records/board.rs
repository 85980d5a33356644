use serde::{Deserialize, Serialize};

use super::{Content, Extra, FORMAT};

/// A tiny index of what changed, read after hints, and now and then with a beat.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Board {
    /// The format number.
    pub format: u32,
    /// Grows when the view changed.
    #[serde(default)]
    pub view: u64,
    /// Grows when an operator wrote an intent.
    #[serde(default)]
    pub intents: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Board {
    /// The board of a cluster in which nothing happened yet.
    #[must_use]
    pub fn fresh() -> Self {
        Self { format: FORMAT, view: 0, intents: 0, extra: Extra::new() }
    }
}

impl Content for Board {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
