//! What commands that steer leadership have in common: they wait for the effect.

use std::time::Duration;

use clap::Args;
use incumbent::{Change, ChangeKind, Cluster, Leader, LeaseState, MemberState, Moment, clock};

use crate::exit::{Failure, Outcome};
use crate::interrupt;
use crate::out::plain;
use crate::session::Session;
use crate::span;

/// How long to wait.
#[derive(Args, Debug)]
pub(crate) struct Patience {
    /// How long to wait for the effect
    #[arg(long, default_value = "30s", value_name = "SPAN", value_parser = span::parse)]
    pub(crate) timeout: Duration,
}

/// What became of a lease after its leader was asked to give it up.
pub(crate) enum Ending {
    /// Somebody leads in a later term.
    Led(Leader, End),
    /// It is free, and nobody has taken it.
    Free(End),
}

/// How a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its holder freed the lease.
    Freed,
    /// Its holder left, without freeing it.
    Left,
    /// Its holder was not heard of for its ttl.
    Expired,
    /// Its holder was evicted.
    Evicted,
}

impl End {
    /// The word that JSON has for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Freed => "freed",
            Self::Left => "left",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
        }
    }

    /// What the leader did, or what became of it.
    pub(crate) fn sentence(self, from: &str, lease: &str, term: u64) -> String {
        match self {
            Self::Freed => format!("{from} resigned {lease} (term {term})"),
            Self::Left => format!("{from} had left before it could resign {lease} (term {term})"),
            Self::Expired => format!(
                "{from} never answered: it was not heard of for its ttl, so that its term {term} \
                 of {lease} expired"
            ),
            Self::Evicted => {
                format!("{from} was evicted before it resigned {lease} (term {term})")
            }
        }
    }
}

/// Waits until the lease is out of this term.
pub(crate) async fn until_over(
    cluster: &Cluster,
    lease: &str,
    asked: &Leader,
    patience: &Patience,
) -> Outcome<Ending> {
    let term = asked.term;
    let mut watch = cluster.watch_lease(lease)?;
    let mut deadline = clock::now() + patience.timeout;
    let mut freed = false;
    let mut last = None;
    loop {
        let state = tokio::select! {
            state = watch.recv() => state,
            () = tokio::time::sleep(deadline.since(clock::now())) => {
                return match last {
                    Some(state) if freed => Ok(Ending::Free(ended(cluster, &state, asked).await?)),
                    last => Err(late(lease, last, patience)),
                };
            }
            _ = interrupt::received() => {
                let said = "interrupted; the request stays in the store and may still be met";
                return Err(Failure::new(crate::exit::Code::Interrupted, said));
            }
        };
        let Some(state) = state else { return Err(late(lease, last, patience)) };
        match &state.leader {
            Some(leader) if leader.term > term => {
                let end = ended(cluster, &state, asked).await?;
                return Ok(Ending::Led(leader.clone(), end));
            }
            Some(_) => {}
            // Nobody may want it; one who does takes it within a ttl.
            None if !freed => {
                freed = true;
                deadline = earlier(deadline, clock::now() + asked.ttl);
            }
            None => {}
        }
        last = Some(state);
    }
}

/// How the term of the one that was asked ended, by what the lease remembers and what became of its
/// member.
async fn ended(cluster: &Cluster, state: &LeaseState, asked: &Leader) -> Outcome<End> {
    let freed = |change: &Change| change.kind == ChangeKind::Freed && change.term == asked.term;
    if state.changes.iter().any(freed) {
        return Ok(End::Freed);
    }
    let next = state.changes.iter().find(|change| change.term > asked.term);
    if let Some(next) = next {
        return Ok(match next.kind {
            ChangeKind::Taken | ChangeKind::Freed => End::Freed,
            ChangeKind::Inherited => End::Left,
            ChangeKind::Expired => End::Expired,
            ChangeKind::Evicted => End::Evicted,
        });
    }
    let members = cluster.members().await?;
    let member = members.iter().find(|member| member.id == asked.member);
    Ok(match member.map(|member| member.state) {
        Some(MemberState::Left) => End::Left,
        Some(MemberState::Evicted) => End::Evicted,
        Some(MemberState::Alive | MemberState::Expired) | None => End::Expired,
    })
}

/// Warns if the leader is probably gone: then it won't do what it is asked for.
pub(crate) fn warn_if_overdue(session: &Session, leader: &Leader) {
    if leader.is_overdue() {
        session.remark(format!(
            "{} was last heard from {} ago, longer than its ttl of {}: it may be gone",
            plain(&leader.node),
            span::text(leader.age.unwrap_or_default()),
            span::setting(leader.ttl)
        ));
    }
}

fn late(lease: &str, last: Option<LeaseState>, patience: &Patience) -> Failure {
    let waited = span::setting(patience.timeout);
    let holder = last.and_then(|state| state.leader);
    let who = holder.map_or("nobody is known to lead it".to_owned(), |leader| {
        let heard = leader.age.map(|age| format!(", last heard from {} ago", span::text(age)));
        format!("{} still has it{}", plain(&leader.node), heard.unwrap_or_default())
    });
    Failure::late(format!(
        "{lease} did not change hands in {waited}: {who}. The request stays in the store and may \
         still be met; wait with --timeout, or `incumbent evict` a node that hangs"
    ))
}

fn earlier(one: Moment, other: Moment) -> Moment {
    one.min(other)
}
