//! Connecting: how long it may take, and to which of several servers.

use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use incumbent_core::store::{ErrorKind, StoreError};
use tokio::time::{sleep, timeout};

/// How long one server is waited for before another is tried beside it.
const STAGGER: Duration = Duration::from_millis(500);

/// Fails after so long with an error that says so.
///
/// # Errors
///
/// Unavailable if it took longer; otherwise what the work says.
pub async fn within<T>(
    server: &str,
    what: &str,
    span: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(span, work).await.unwrap_or_else(|_| {
        Err(StoreError::unavailable(format!(
            "{server}: {what} took longer than {} ms. Check that the server is running and can be reached",
            span.as_millis()
        )))
    })
}

/// The connection that is ready first. The servers are tried in this order, the next one as soon as
/// one fails or isn't ready after half a second: one that hangs costs no more than that, and one that
/// is far away still gets all of its time.
///
/// # Errors
///
/// All messages, and rejected only if waiting helps with none of the servers.
pub async fn first_of<P, S, F>(
    servers: impl IntoIterator<Item = P>,
    connect: impl Fn(P) -> F,
) -> Result<S, StoreError>
where
    F: Future<Output = Result<S, StoreError>> + Send,
{
    let mut servers = servers.into_iter();
    let mut attempts: Vec<Pin<Box<F>>> = Vec::new();
    let mut errors = Vec::new();
    loop {
        let next = servers.next();
        let more = next.is_some();
        attempts.extend(next.map(|server| Box::pin(connect(server))));
        if attempts.is_empty() {
            return Err(all_failed(errors));
        }
        let mut patience = pin!(sleep(STAGGER));
        let connected = poll_fn(|context| {
            let mut failed = false;
            let mut place = 0;
            while let Some(attempt) = attempts.get_mut(place) {
                match attempt.as_mut().poll(context) {
                    Poll::Pending => place += 1,
                    Poll::Ready(Ok(session)) => return Poll::Ready(Some(session)),
                    Poll::Ready(Err(error)) => {
                        failed = true;
                        errors.push(error);
                        drop(attempts.swap_remove(place));
                    }
                }
            }
            let waited = more && patience.as_mut().poll(context).is_ready();
            if failed || waited { Poll::Ready(None) } else { Poll::Pending }
        });
        if let Some(session) = connected.await {
            return Ok(session);
        }
    }
}

fn all_failed(errors: Vec<StoreError>) -> StoreError {
    let rejected = errors.iter().all(|error| error.kind == ErrorKind::Rejected);
    let kind = if rejected { ErrorKind::Rejected } else { ErrorKind::Unavailable };
    let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
    let message =
        if messages.is_empty() { "no server is named".into() } else { messages.join("; ") };
    StoreError { kind, message }
}

/// Any number below this. It decides nothing but an order, so any source of chance will do.
#[must_use]
pub fn chance(below: usize) -> usize {
    let number = RandomState::new().hash_one(below) % (below.max(1) as u64);
    usize::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn server(place: (u64, bool)) -> Result<u64, StoreError> {
        let (milliseconds, works) = place;
        sleep(Duration::from_millis(milliseconds)).await;
        if works { Ok(milliseconds) } else { Err(StoreError::unavailable("down")) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_costs_little_and_one_far_away_gets_its_time() {
        let first = first_of([(100_000, true), (0, false), (100, true)], server);
        assert_eq!(timeout(Duration::from_millis(700), first).await, Ok(Ok(100)));
        assert_eq!(first_of([(5_000, true), (9_000, true)], server).await, Ok(5_000));
        let none = first_of([(0, false), (900, false)], server).await.unwrap_err();
        assert_eq!((none.kind, none.message.as_str()), (ErrorKind::Unavailable, "down; down"));
        let empty = first_of([], server).await.unwrap_err();
        assert!(empty.message.contains("no server"), "{empty}");
    }
}
