//! The grid: what a user's own strategy sees and changes.

use crate::draft::Draft;

/// What a strategy sees and changes.
pub struct Grid<'p, 'a> {
    #[allow(dead_code, reason = "comes with the strategies")]
    draft: Draft<'p, 'a>,
}
