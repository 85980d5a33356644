//! The in-process store of incumbent.
//!
//! # What it needs
//!
//! Nothing. Clone a [`MemoryStore`] and give the clones to the nodes of one process: they share
//! its records. Two stores made by [`MemoryStore::new`] share nothing.
//!
//! # What it promises
//!
//! Every write is a compare-and-swap under one lock, reads see all that was written before, hints
//! are pushed and no answer is ever unavailable or unknown. All records are gone with the last
//! clone, terms included, so a fence that outlives the process needs another store.
//!
//! It has no clock, so records carry no age.

mod store;

pub use store::MemoryStore;
