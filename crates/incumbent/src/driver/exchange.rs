//! One exchange with a store, within its limits and its deadline.

use std::sync::Arc;

use incumbent_core::Moment;
use incumbent_core::store::{Answer, ErrorKind, Exchange, Lane, Reply, Store, StoreError};

use crate::driver::obstacles::LockWait;
use crate::driver::{clock, thread};
use crate::open::OpenStore;

/// Sends an exchange, in several parts if the store takes only so many operations at once. Only
/// for futures that run on incumbent's thread.
pub(crate) async fn send(
    store: OpenStore,
    cluster: Arc<str>,
    lane: Lane,
    exchange: Exchange,
    deadline: Moment,
) -> Result<Reply, StoreError> {
    let mut wait = LockWait::of(lane, &exchange);
    let limit = store.capabilities().max_operations.max(1);
    let mut sending: Answer<'_> = if exchange.writes.len() + exchange.reads.len() <= limit {
        store.exchange(&cluster, lane, exchange)
    } else {
        Box::pin(send_parts(&*store, &cluster, lane, exchange, limit))
    };
    loop {
        let ask_at = wait.as_ref().map_or(Moment::NEVER, LockWait::ask_at);
        let answer = tokio::select! {
            biased;
            answer = &mut sending => answer,
            () = thread::sleep_until(deadline) => {
                Err(StoreError::unknown("the store did not answer in time"))
            }
            () = thread::sleep_until(ask_at) => {
                if let Some(wait) = &mut wait {
                    wait.ask(&store, &cluster);
                }
                continue;
            }
        };
        return answer.map_err(|error| {
            let told = wait.map_or(String::new(), |wait| wait.told(&store));
            StoreError { message: error.message + &told, ..error }
        });
    }
}

/// Sends what is more than so many operations, one part after the other.
async fn send_parts(
    store: &dyn Store,
    cluster: &str,
    lane: Lane,
    mut exchange: Exchange,
    limit: usize,
) -> Result<Reply, StoreError> {
    let mut whole = Reply::default();
    while !exchange.writes.is_empty() || !exchange.reads.is_empty() {
        let writes: Vec<_> = exchange.writes.drain(..limit.min(exchange.writes.len())).collect();
        let room = limit - writes.len();
        let reads = exchange.reads.drain(..room.min(exchange.reads.len())).collect();
        let part = Exchange { writes, reads };
        match store.exchange(cluster, lane, part).await {
            Ok(reply) => {
                whole.writes.extend(reply.writes);
                whole.reads.extend(reply.reads);
            }
            // What was sent before has been applied, so nobody may conclude that nothing was.
            Err(error) if !whole.writes.is_empty() => {
                return Err(StoreError { kind: ErrorKind::Unknown, ..error });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(whole)
}

/// The moment so long from now.
pub(crate) fn within(span: std::time::Duration) -> Moment {
    clock::now() + span
}
