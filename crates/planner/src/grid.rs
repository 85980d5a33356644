//! The grid.
use crate::draft::Draft;
/// What a strategy sees.
pub struct Grid<'p, 'a> {
    #[allow(dead_code)]
    draft: Draft<'p, 'a>,
}
