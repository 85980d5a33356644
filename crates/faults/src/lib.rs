//! Real processes on one store: what they write down, and whether it can be true.
//!
//! Each process of the program `candidate` stands for one lease and writes down when it asked "do
//! I lead?" and what it was told, with moments of CLOCK_BOOTTIME, which all processes of one
//! machine share. Afterwards all histories are laid side by side ([`check`]).

mod history;
mod verdict;

pub use history::{Entry, History, Loss};
pub use verdict::{Account, Violation, check};
