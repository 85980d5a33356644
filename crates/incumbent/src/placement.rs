//! How duties are placed: ready strategies, and the means for one's own.

pub use incumbent_planner::{Grid, Place, Refusal, Rule, Strategy, ready};
