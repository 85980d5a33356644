//! What commands that steer leadership have in common: they wait for the effect.

use std::time::Duration;

use clap::Args;
use incumbent::{Cluster, Leader, LeaseState, Moment, clock};

use crate::exit::{Failure, Outcome};
use crate::interrupt;
use crate::json;
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
    Led(Leader),
    /// It is free, and nobody has taken it.
    Free,
}

/// Waits until the lease is out of this term.
pub(crate) async fn until_over(
    cluster: &Cluster,
    lease: &str,
    term: u64,
    ttl: Duration,
    patience: &Patience,
) -> Outcome<Ending> {
    let mut watch = cluster.watch(lease)?;
    let mut deadline = clock::now() + patience.timeout;
    let mut freed = false;
    let mut last = None;
    loop {
        let state = tokio::select! {
            state = watch.next() => state,
            () = tokio::time::sleep(deadline.since(clock::now())) => {
                return if freed { Ok(Ending::Free) } else { Err(late(lease, last, patience)) };
            }
            _ = interrupt::received() => {
                let said = "interrupted; the request stays in the store and may still be met";
                return Err(Failure::new(crate::exit::Code::Interrupted, said));
            }
        };
        let Some(state) = state else { return Err(late(lease, last, patience)) };
        match &state.leader {
            Some(leader) if leader.term > term => return Ok(Ending::Led(leader.clone())),
            Some(_) => {}
            // Nobody may want it; one who does takes it within a ttl.
            None if !freed => {
                freed = true;
                deadline = earlier(deadline, clock::now() + ttl);
            }
            None => {}
        }
        last = Some(state);
    }
}

/// Warns if the leader is probably gone: then it won't do what it is asked for.
pub(crate) fn warn_if_overdue(session: &Session, leader: &Leader) {
    if json::overdue(leader.state, leader.age, Some(leader.ttl)) {
        session.remark(format!(
            "{} was last heard of {} ago, which is more than its ttl of {}: it may be gone",
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
        let heard = leader.age.map(|age| format!(", last heard of {} ago", span::text(age)));
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
