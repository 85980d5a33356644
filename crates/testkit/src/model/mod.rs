//! A small store that is right, or wrong in one chosen way.

mod mistake;
mod shelf;
mod store;

pub use mistake::Mistake;
pub use store::ModelStore;
