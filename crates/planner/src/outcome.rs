//! What a plan says.

use std::collections::BTreeMap;
use std::fmt;

use crate::rule::Rule;
use crate::situation::Situation;

/// Where every duty should run. Indexes are those of the situation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// For each duty its node.
    pub target: Vec<Option<usize>>,
    /// Every duty without a node, with the reason.
    pub unplaced: Vec<Unplaced>,
    /// Every duty whose node changes, with the reason.
    pub moves: Vec<PlanMove>,
    /// Nothing more would move, however much were allowed to. A search that was cut short ends
    /// here too if it moved nothing: the next would end in the same way.
    pub balanced: bool,
}

impl Plan {
    /// Makes the plan come true: every duty of the situation runs where the plan wants it.
    pub fn apply(&self, situation: &mut Situation) {
        for (duty, target) in situation.duties.iter_mut().zip(&self.target) {
            duty.running = *target;
        }
    }
}

/// A duty without a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// The duty.
    pub duty: usize,
    /// Why it runs nowhere.
    pub reason: Reason,
}

/// Why a duty runs nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is paused.
    Paused,
    /// There are no nodes.
    NoNodes,
    /// It is pinned to a node that doesn't exist.
    UnknownPin(String),
    /// The strategy detached it.
    Detached,
    /// Every node is ruled out: how many nodes by which rule. A node counts for the first rule
    /// that it fails, in the order of [`Rule::ALL`].
    RuledOut(BTreeMap<Rule, usize>),
    /// It may fit, but finding out took more work than a plan may take. If anything moves, the
    /// next plan goes on from there.
    NotTried,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => f.write_str("it is paused"),
            Self::NoNodes => f.write_str("there are no nodes"),
            Self::UnknownPin(name) => write!(f, "it is pinned to {name:?}, which doesn't exist"),
            Self::Detached => f.write_str("the strategy detached it"),
            Self::NotTried => {
                f.write_str("it wasn't tried: planning came to the limit of its work")
            }
            Self::RuledOut(rules) => {
                f.write_str("no node may run it: ")?;
                for (position, (rule, nodes)) in rules.iter().enumerate() {
                    let separator = if position == 0 { "" } else { ", " };
                    write!(f, "{separator}{nodes} {rule}")?;
                }
                Ok(())
            }
        }
    }
}

/// A duty whose node changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanMove {
    /// The duty.
    pub duty: usize,
    /// Where it runs, if anywhere.
    pub from: Option<usize>,
    /// Where it should run, if anywhere.
    pub to: Option<usize>,
    /// Why it moves.
    pub why: Why,
}

/// Why a duty moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// It ran nowhere, or on a node that is gone.
    Homeless,
    /// Its node may not run it any more.
    Ruled(Rule),
    /// Its node is being emptied.
    Drained,
    /// It failed on its node.
    Failed,
    /// It is paused, or was detached by a strategy.
    Stopped,
    /// It makes room for one that fits nowhere else.
    MakesRoom,
    /// Another node is preferred for it.
    Preferred,
    /// The nodes become more even.
    Balance,
    /// The strategy wants it.
    Strategy,
    /// A node of the version that it should run is prepared for it. No plan says so by itself.
    Deployed,
}

impl Why {
    /// Whether it counts against the limits of [`Rebalance`](crate::Rebalance).
    #[must_use]
    pub fn is_rebalancing(self) -> bool {
        match self {
            Self::Preferred | Self::Balance | Self::Strategy => true,
            Self::Homeless
            | Self::Ruled(_)
            | Self::Drained
            | Self::Failed
            | Self::Stopped
            | Self::MakesRoom
            | Self::Deployed => false,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Homeless => f.write_str("no live node had it"),
            Self::Ruled(rule) => write!(f, "its node {rule}"),
            Self::Drained => f.write_str("its node is being emptied"),
            Self::Failed => f.write_str("it failed on its node"),
            Self::Stopped => f.write_str("it is paused or detached"),
            Self::MakesRoom => f.write_str("it makes room for one that fits nowhere else"),
            Self::Preferred => f.write_str("another node is preferred for it"),
            Self::Balance => f.write_str("the nodes become more even"),
            Self::Strategy => f.write_str("the strategy wants it"),
            Self::Deployed => f.write_str("a node of another version is prepared for it"),
        }
    }
}
