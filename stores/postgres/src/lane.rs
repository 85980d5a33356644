//! Exchanges of one lane over one connection.

use std::sync::Arc;

use incumbent_core::store::{Lane, Reply, StoreError};
use incumbent_store_common::{Connect, Failure};

use crate::exchange::Job;
use crate::opener::{Opener, Role, has_tables};
use crate::session::Session;

/// Makes connections for one lane.
pub(crate) struct LaneConnect {
    pub(crate) lane: Lane,
    pub(crate) opener: Opener,
}

/// A connection, ready for exchanges.
pub(crate) struct LaneSession {
    pub(crate) lane: Lane,
    pub(crate) session: Arc<Session>,
}

impl Connect for LaneConnect {
    type Session = LaneSession;

    async fn connect(&self) -> Result<LaneSession, StoreError> {
        let session = self.opener.open(&Role::Lane(self.lane)).await?;
        Ok(LaneSession { lane: self.lane, session: Arc::new(session) })
    }

    fn server(&self) -> String {
        self.opener.options.server()
    }
}

impl incumbent_store_common::Session for LaneSession {
    type Job = Job;

    /// The server answers in the order in which it was asked, however much is on its way.
    const AT_ONCE: usize = 256;

    async fn perform(&self, job: &Job) -> Result<Reply, Failure> {
        if !has_tables(&self.session).await.map_err(Failure::fatal)? {
            return Ok(Reply::of_nothing(&job.exchange));
        }
        Ok(self.session.exchange(job, self.lane).await?)
    }

    async fn answers(&self) -> bool {
        self.session.client().batch_execute("").await.is_ok()
    }

    fn has_ended(&self) -> bool {
        self.session.client().is_closed()
    }

    async fn ended(&self) {
        self.session.lost().await;
    }
}
