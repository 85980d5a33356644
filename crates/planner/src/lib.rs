//! x
mod balance;
mod budget;
mod class;
mod draft;
mod explain;
mod grid;
mod index;
mod layout;
pub mod mutant;
mod outcome;
mod planning;
mod policy;
mod prefer;
mod preference;
mod problem;
mod recover;
mod rule;
mod situation;

pub use grid::Grid;
pub use outcome::{Move, Plan, Reason, Unplaced, Why};
pub use planning::plan;
#[cfg(feature = "mutants")]
pub use planning::plan_planted;
pub use policy::{Place, Policy, Rebalance, Strategy};
pub use rule::Rule;
pub use situation::{Duty, FamilySupport, LeaderRule, Node, Pin, Situation};
