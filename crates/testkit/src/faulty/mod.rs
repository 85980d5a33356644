//! A store that fails on purpose.

mod control;
mod faults;
mod store;

pub use faults::{Fault, Faults};
pub use store::FaultyStore;
