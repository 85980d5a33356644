//! The protocol of incumbent.
pub mod store;
