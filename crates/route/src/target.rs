//! Who shall answer a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::request::Parts;
use incumbent::{Leader, Node, Owners, Term};

use crate::KeyRouter;

/// Says who shall answer a request, without asking anybody.
pub trait Target: Clone + Send + Sync + 'static {
    /// Who shall answer. What is known of others must not be older than this.
    fn find(&self, request: &Parts, no_older: Duration) -> Found;

    /// The node that asks.
    fn node(&self) -> Option<&Node>;
}

/// Who shall answer a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Found {
    /// Whoever has it.
    Anybody,
    /// This node, under this term.
    Here(Box<Term>),
    /// Somebody else.
    There(Box<Leader>),
    /// Nobody is known, for this reason.
    Nobody(String),
}

/// The leader of a lease; see [`RouteLayer::to_leader`](crate::RouteLayer::to_leader).
#[derive(Clone, Debug)]
pub struct ToLeader {
    pub(crate) node: Node,
    pub(crate) lease: Arc<str>,
    /// The highest term that was seen.
    pub(crate) seen: Arc<AtomicU64>,
}

impl Target for ToLeader {
    fn find(&self, _: &Parts, no_older: Duration) -> Found {
        let lease = &self.lease;
        if let Some(term) = self.node.term(lease) {
            self.seen.fetch_max(term.fence().as_u64(), Ordering::Relaxed);
            return Found::Here(Box::new(term));
        }
        let Some(known) = self.node.known_leader(lease) else {
            return Found::Nobody(format!(
                "this node doesn't know who leads {lease:?}: it has not looked yet, or doesn't \
                 stand for it"
            ));
        };
        if known.age > no_older {
            return Found::Nobody(stale(&format!("leads {lease:?}"), known.age));
        }
        let Some(leader) = known.leader else {
            return Found::Nobody(format!("nobody leads {lease:?} at the moment"));
        };
        if self.seen.fetch_max(leader.term, Ordering::Relaxed) > leader.term {
            return Found::Nobody(format!("nobody is known to lead {lease:?} at the moment"));
        }
        Found::There(Box::new(leader))
    }

    fn node(&self) -> Option<&Node> {
        Some(&self.node)
    }
}

/// Whoever runs the duty of a key; see [`RouteLayer::to_owner`](crate::RouteLayer::to_owner).
#[derive(Clone)]
pub struct ToOwner {
    pub(crate) owners: Owners,
    pub(crate) keys: Arc<KeyRouter>,
    pub(crate) key: Arc<KeyOf>,
}

/// The key of a request.
pub(crate) type KeyOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;

impl Target for ToOwner {
    fn find(&self, request: &Parts, no_older: Duration) -> Found {
        let Some(key) = (self.key)(request) else { return Found::Anybody };
        let Some(duty) = self.keys.duty(key) else { return Found::Anybody };
        if let Some(term) = self.owners.term(duty) {
            return Found::Here(Box::new(term));
        }
        let named = format!("{}/{duty}", self.owners.family());
        let Some(known) = self.owners.owner(duty) else {
            return Found::Nobody(format!("this node has not looked yet who runs {named}"));
        };
        if known.age > no_older {
            return Found::Nobody(stale(&format!("runs {named}"), known.age));
        }
        let nobody = || Found::Nobody(format!("nobody runs {named} at the moment"));
        known.owner.map_or_else(nobody, |owner| Found::There(Box::new(owner)))
    }

    fn node(&self) -> Option<&Node> {
        self.owners.node()
    }
}

impl std::fmt::Debug for ToOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToOwner").field("family", &self.owners.family()).finish_non_exhaustive()
    }
}

fn stale(what: &str, age: Duration) -> String {
    format!("who {what} was last heard {age:.0?} ago, and is too old to go by: is the store away?")
}
