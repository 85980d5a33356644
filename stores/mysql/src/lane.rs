//! A connection of its own for each lane, and whose turn it is.

use incumbent_core::store::{Reply, StoreError};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::Sent;
use crate::exchange::Job;
use crate::options::MysqlOptions;
use crate::session::Session;

/// One lane: at most one connection, used by one exchange after another.
#[derive(Default)]
pub(crate) struct LaneSlot {
    /// Whoever uses the connection takes it out. If its future is dropped half-way the connection
    /// goes with it, so nobody ever reads another's answer (F18).
    session: Mutex<Option<Session>>,
}

impl LaneSlot {
    pub(crate) fn new(session: Option<Session>) -> Self {
        Self { session: Mutex::new(session) }
    }

    /// Does an exchange when it is its turn, over a new connection if need be.
    pub(crate) async fn exchange(
        &self,
        options: &MysqlOptions,
        job: &Job,
    ) -> Result<Reply, StoreError> {
        let Ok(mut slot) = timeout(options.timeout, self.session.lock()).await else {
            return Err(late(options, Sent::Nothing));
        };
        let mut session = match slot.take() {
            Some(session) => usable(options, session).await?,
            None => Session::open(options).await?,
        };
        let Ok(done) = timeout(options.timeout, session.exchange(options, job)).await else {
            return Err(late(options, job.sent()));
        };
        match done {
            Ok(reply) => {
                *slot = Some(session);
                Ok(reply)
            }
            Err(failure) => {
                *slot = failure.keep.then_some(session);
                Err(failure.error)
            }
        }
    }
}

/// The connection, or a new one in its place.
async fn usable(options: &MysqlOptions, mut session: Session) -> Result<Session, StoreError> {
    if let Ok(true) = timeout(options.connect_timeout, session.is_usable()).await {
        return Ok(session);
    }
    drop(session);
    Session::open(options).await
}

fn late(options: &MysqlOptions, sent: Sent) -> StoreError {
    let message = format!("{}: no answer within {:?}", options.server(), options.timeout);
    match sent {
        Sent::Nothing => StoreError::unavailable(message),
        Sent::Write => StoreError::unknown(message),
    }
}
