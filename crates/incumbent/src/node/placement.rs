//! How duties are placed: ready strategies, the means for one's own, and the planner itself to test it
//! with.
//!
//! # Testing a strategy
//!
//! [`plan`] is what the cluster's leader runs. It is a pure function from a [`Situation`] (nodes,
//! duties, and where these run) to a [`Plan`], so that a strategy can be tested without a store,
//! a clock or a cluster:
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Arc;
//!
//! use incumbent::placement::{Grid, Place, PlanDuty, PlanNode, Situation, Strategy, explain, plan};
//!
//! /// Duties of one tenant run together: on the node that has the first of them.
//! #[derive(Debug)]
//! struct ByTenant;
//!
//! impl Place for ByTenant {
//!     fn place(&self, grid: &mut Grid<'_, '_>) {
//!         let tenant = |duty: &PlanDuty| duty.name.split('.').next().map(str::to_owned);
//!         let mut homes = HashMap::new();
//!         for (at, duty, place) in grid.duties() {
//!             let home = homes.entry(tenant(duty)).or_insert(place.or(grid.least_loaded(at)));
//!             if let Some(home) = *home {
//!                 // If it doesn't fit there it stays, or gets the least loaded node.
//!                 let _ = grid.move_to(at, home);
//!             }
//!         }
//!     }
//! }
//!
//! let node = |name: &str| PlanNode::new(format!("id of {name}"), name).running("mail", [""; 0]);
//! let mut situation = Situation {
//!     nodes: vec![node("billing-1"), node("billing-2")],
//!     duties: ["acme.in", "acme.out", "zeta.in", "zeta.out"]
//!         .map(|name| PlanDuty::new("mail", name))
//!         .into(),
//!     ..Situation::default()
//! };
//! situation.policy.strategy = Strategy::Own(Arc::new(ByTenant));
//!
//! // Each tenant's duties are together, and the tenants are apart.
//! let first = plan(&situation);
//! assert_eq!(first.target[0], first.target[1]);
//! assert_eq!(first.target[2], first.target[3]);
//! assert_ne!(first.target[0], first.target[2]);
//!
//! // When that has come true, nothing moves any more.
//! first.apply(&mut situation);
//! let second = plan(&situation);
//! assert!(second.moves.is_empty() && second.balanced);
//!
//! // When a node is lost, its duties move to the other.
//! situation.nodes.pop();
//! let third = plan(&situation);
//! assert!(third.target.iter().all(|node| *node == Some(0)));
//! println!("{}", explain(&situation, &third, 0).expect("it is one of the duties"));
//! ```
//!
//! [`Cluster::plan_with`](crate::Cluster::plan_with) asks the same of a cluster that runs: what a strategy
//! would move there, without moving it.

pub use incumbent_planner::{
    Because, FamilySupport, Grid, LeaderRule, Other, Pin, Place, Plan, PlanDuty, PlanExplanation,
    PlanMove, PlanNode, Planner, Policy, Reason, Rebalance, Refusal, Rule, Situation, Strategy,
    Unplaced, Whereabouts, Why, explain, plan, ready,
};
