//! Which node runs which duty: a pure, deterministic planner.
//!
//! [`plan`] takes a [`Situation`] (nodes, duties, what runs where, a policy) and returns a
//! [`Plan`]: the node of every duty, what moves and why, and for each duty without a node the
//! exact reason. There is no I/O, no clock and no randomness in it, and the order of nodes and
//! duties changes nothing.
//!
//! ```
//! use incumbent_planner::{PlanDuty, PlanNode, Situation, explain, plan};
//!
//! let none: [&str; 0] = [];
//! let mut situation = Situation {
//!     nodes: vec![PlanNode::new("m1", "billing-1").running("projection", none)],
//!     duties: (0..12).map(|n| PlanDuty::new("projection", format!("shard-{n:02}"))).collect(),
//!     ..Situation::default()
//! };
//! let first = plan(&situation);
//! assert!(first.target.iter().all(|node| *node == Some(0)));
//!
//! // A second node joins and gets its share: six of twelve, and no more than six move.
//! first.apply(&mut situation);
//! situation.nodes.push(PlanNode::new("m2", "billing-2").running("projection", none));
//! let second = plan(&situation);
//! assert_eq!(second.moves.len(), 6);
//!
//! // What is even stays as it is.
//! second.apply(&mut situation);
//! let third = plan(&situation);
//! assert!(third.moves.is_empty() && third.balanced);
//! println!("{}", explain(&situation, &third, 0).expect("it is one of the duties"));
//! ```
//!
//! # What is never broken
//!
//! The [rules](Rule): a node knows the family and the version, has the labels that are selected,
//! isn't cordoned or draining (it keeps what it runs, until that fits elsewhere), has room by
//! weight, by number and by number of the family, has no duty from which this one is kept apart,
//! and is the one that the duty is pinned to. A duty that fits nowhere is unplaced, with how many
//! nodes each rule took away. It makes no difference how few nodes are left.
//!
//! # What is preferred, in this order
//!
//! 1. A node that isn't being emptied, then one on which the duty didn't fail.
//! 2. The node of a preferred pin, then one that isn't the leader if the duty avoids it.
//! 3. A zone with fewer duties of the family, for duties that are spread. While nothing else may
//!    move, one without a node goes before that to a node that carries less than its zone on
//!    average, which would get more later.
//! 4. Staying, unless another node carries so much less that the two become more even.
//! 5. The least loaded node, counting all families and reported load; then the one with the
//!    fewest of the family.
//!
//! # What moves
//!
//! Recovery is at once and without limit: duties that run nowhere, on a node that is gone, that
//! may not run them, is being emptied, or on which they failed. Everything else is rebalancing, and
//! has the limits of [`Rebalance`].
//!
//! # After a change
//!
//! [`plan`] reads everything. A [`Planner`] remembers what it read, is told what changed, and makes the
//! same plans.
//!
//! # How much work it is
//!
//! What fits nowhere is looked for once. Should that not be enough, the work ends at a limit, which
//! is counted in steps. What wasn't reached then is [not tried](Reason::NotTried).

#[cfg(doctest)]
#[doc = include_str!("../../../docs/placement.md")]
struct Guide;

mod balance;
mod budget;
mod class;
mod counts;
mod draft;
mod effort;
mod explain;
mod facts;
mod grid;
mod index;
mod indexes;
mod kinds;
mod layout;
pub mod mutant;
mod outcome;
mod planner;
mod planning;
mod policy;
mod prefer;
mod preference;
mod problem;
mod queues;
pub mod ready;
mod reasons;
mod recover;
mod refusal;
mod renumbering;
mod room;
mod rule;
mod situation;
mod staying;
mod units;
mod wishes;

pub use explain::{Because, Other, PlanExplanation, Whereabouts, explain};
pub use grid::Grid;
pub use outcome::{Plan, PlanMove, Reason, Unplaced, Why};
pub use planner::Planner;
pub use planning::plan;
#[cfg(feature = "mutants")]
pub use planning::{plan_planted, plan_within};
pub use policy::{Place, Policy, Rebalance, Strategy};
pub use refusal::Refusal;
pub use rule::Rule;
pub use situation::{FamilySupport, LeaderRule, Pin, PlanDuty, PlanNode, Situation};
