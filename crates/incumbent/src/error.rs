//! What can go wrong, whether anything changed by it, and what to do next.

use std::io;
use std::time::Duration;

use incumbent_core::names::NameError;
use incumbent_core::records::Unreadable;
use incumbent_core::settings::TimingError;
use incumbent_core::store::StoreError;
use incumbent_core::{LeaseName, MemberId};

/// The error that leader-only work may end with: whatever `?` makes of anything.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What leader-only work ends with.
pub type WorkResult = Result<(), BoxError>;

/// Why a store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No store has this scheme.
    #[error("{}", unknown_scheme(scheme, url, known))]
    UnknownScheme {
        /// What stands before the colon.
        scheme: String,
        /// The URL, without what may be a password.
        url: String,
        /// The schemes that are built in.
        known: String,
    },
    /// The store exists but is not built into this program.
    #[error(
        "the store URL {url:?} needs the feature {feature:?} of the crate incumbent, which this \
         program was built without: enable it, or use one of {known}"
    )]
    NotBuilt {
        /// The URL, without what may be a password.
        url: String,
        /// The feature to enable.
        feature: &'static str,
        /// The schemes that are built in.
        known: String,
    },
    /// The URL isn't understood.
    #[error("the store URL {url:?} isn't understood: {source}")]
    Url {
        /// The URL, without what may be a password.
        url: String,
        /// What is wrong with it, and what would be right.
        source: StoreError,
    },
    /// The store refused.
    #[error("the store {url:?} can't be opened: {source}")]
    Store {
        /// The URL, without what may be a password.
        url: String,
        /// What it said, and what to do about it.
        source: StoreError,
    },
    /// The thread of incumbent's own could not be started.
    #[error("incumbent's own thread can't be started: {0}. Raise the process's limits")]
    Thread(#[from] io::Error),
}

/// Why a node did not join. It is no member: whatever it may have written runs out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A name is not valid. Nothing was sent.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The times don't fit together. Nothing was sent.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The environment doesn't say what is needed. Nothing was sent.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The store could not be opened. Nothing was sent.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store says that the set-up is wrong: trying again won't help.
    #[error("the store refuses this node: {0}")]
    Rejected(StoreError),
    /// The store could not be reached in time. Try again later.
    #[error(
        "not joined after {waited:?}: {last}. Check that the store is running and can be reached"
    )]
    TimedOut {
        /// How long it was tried.
        waited: Duration,
        /// What the store said last.
        last: String,
    },
    /// The thread of incumbent's own could not be started. Nothing was sent.
    #[error("incumbent's own thread can't be started: {0}. Raise the process's limits")]
    Thread(#[from] io::Error),
}

/// What is wrong with the environment. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A variable that is needed is not set.
    #[error("{variable} is not set: set it, for instance to {example}")]
    Missing {
        /// Which one.
        variable: &'static str,
        /// What it might be.
        example: &'static str,
    },
    /// A variable can't be understood.
    #[error("{variable}={value:?} is not understood: {reason}")]
    Bad {
        /// Which one.
        variable: &'static str,
        /// What it is.
        value: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
}

/// Why a node does not stand for a lease. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// The lease's name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// This node stands for the lease already: keep the one campaign, it doesn't stack (F19).
    #[error(
        "this node campaigns for the lease {lease} already: use that campaign, or drop it first"
    )]
    Duplicate {
        /// Which lease.
        lease: LeaseName,
    },
    /// The payload is too large for the store.
    #[error("the payload for the lease {lease} has {bytes} bytes, and this store takes {most}")]
    Payload {
        /// Which lease.
        lease: LeaseName,
        /// How large it is.
        bytes: usize,
        /// The most that fits.
        most: usize,
    },
    /// The node has left, or is leaving.
    #[error("this node has left the cluster: join again")]
    Left,
    /// The node could not start a task of its own.
    #[error("incumbent's own thread can't be started: {0}")]
    Thread(String),
}

/// Why a node does not serve a family. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The name of the family or of a duty is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// This node serves the family already.
    #[error("this node serves the family {family:?} already: change its list through `Serving`")]
    Duplicate {
        /// Which family.
        family: String,
    },
    /// The node joined without membership.
    #[error(
        "the family {family:?} can't be served by a node that joined without membership: duties \
         are placed among members. Build the node without `without_membership`"
    )]
    NoMembership {
        /// Which family.
        family: String,
    },
    /// The node has left, or is leaving.
    #[error("this node has left the cluster: join again")]
    Left,
    /// The node could not start a task of its own.
    #[error("incumbent's own thread can't be started: {0}")]
    Thread(String),
}

/// The node has left the cluster, so that nothing more will come. Join again to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this node has left the cluster: join again")]
pub struct Closed;

/// Why a departure was not in order. The node has left in either case: it beats no more, and
/// its leases are free after its ttl at the latest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaveError {
    /// Some work did not end in time. It may still run, and it is trusted no more.
    #[error(
        "work under {} did not end within the grace period of {grace:?}; the leases run out with the \
         ttl. Let it end when its token fires, or raise the grace period",
        list(leases)
    )]
    WorkStillRuns {
        /// The leases under which it runs.
        leases: Vec<LeaseName>,
        /// How long was waited.
        grace: Duration,
    },
    /// All work has ended, but the store did not confirm that the member is closed.
    #[error("the store did not confirm the departure in time; the leases run out with the ttl")]
    Unconfirmed,
}

/// What is said about a URL that names no store, with what was probably meant.
fn unknown_scheme(scheme: &str, url: &str, known: &str) -> String {
    if scheme.is_empty() || !url.contains(':') {
        return format!(
            "the store URL {url:?} doesn't begin with the name of a store: this program knows \
             {known}. Write it without quotes or signs before that name, and a file as sqlite:app.db"
        );
    }
    let name = scheme.split('+').next().unwrap_or_default().to_lowercase();
    let farthest = (name.len() / 3).min(2);
    let far = |other: &&str| edits(other.trim_end_matches(':'), &name);
    let meant = known.split(", ").filter(|other| far(other) <= farthest).min_by_key(far);
    let meant = meant.map(|meant| format!(". {meant} was probably meant")).unwrap_or_default();
    format!(
        "{scheme:?} in the store URL {url:?} is not a known store: this program knows {known}{meant}"
    )
}

/// How many characters must be put in, left out or replaced to make one text of the other.
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (above, a) in one.chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(other.chars()) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = replaced.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = above + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

fn list(leases: &[LeaseName]) -> String {
    leases.iter().map(LeaseName::as_str).collect::<Vec<_>>().join(", ")
}

/// The store did not answer in time. Ask again, or go by [`Term::is_held`](crate::Term::is_held).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store did not answer in time; leadership is as trusted as before")]
pub struct Unanswered;

/// A lease was given up, and the store did not confirm in time that it is free. This node trusts it no
/// more in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the lease was given up, but the store did not confirm in time that it is free; if it isn't yet, \
     it will be when the store answers again, or when this node's ttl has passed"
)]
pub struct Unfreed;

/// Why a question to the cluster, or a request to it, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A name is not valid. Nothing was sent.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store failed. Its kind says whether a request may have been carried out.
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
    /// A record can't be read, so nothing is concluded from it. Nothing was changed.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Nobody holds the lease, so nobody can give it up. Nothing was changed.
    #[error("nobody holds the lease {lease}: there is nothing to give up")]
    NobodyLeads {
        /// Which lease.
        lease: LeaseName,
    },
    /// The lease has another term than the one that was meant. Nothing was changed.
    #[error("the lease {lease} is in term {term}, and {meant} was meant: check who leads now")]
    OtherTerm {
        /// Which lease.
        lease: LeaseName,
        /// The term that was meant.
        meant: u64,
        /// Its present or last term.
        term: u64,
    },
    /// No live member has this name or id. Nothing was changed.
    #[error("no live member is called {name:?}: list the members and use a name from there")]
    NoSuchMember {
        /// What was asked for.
        name: String,
    },
    /// Several live members have this name (F2). Nothing was changed.
    #[error("{} live members are called {name:?}: name one of the ids {}", ids.len(), ids_text(ids))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The members.
        ids: Vec<MemberId>,
    },
    /// The record changed under every attempt, and was left as it is. What else was written first stands:
    /// an operator's request may be among the [intents](crate::Cluster::all_intents) already.
    #[error(
        "the record {key} kept changing, and was left as it is. A request may be among the intents all \
         the same: look there, then try again"
    )]
    Contended {
        /// Where it is.
        key: String,
    },
    /// The thread of incumbent's own could not be started. Nothing was sent.
    #[error("incumbent's own thread can't be started: {0}")]
    Thread(String),
}

fn ids_text(ids: &[MemberId]) -> String {
    ids.iter().map(MemberId::as_str).collect::<Vec<_>>().join(", ")
}
