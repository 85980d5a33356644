use std::sync::Arc;
use std::time::Duration;

use incumbent_core::store::{self, Reply, StoreError};
use tokio::runtime::Handle;

use crate::failure::Sent;
use crate::lane::{Connect, Lane, LaneOptions, Session};

/// The three lanes of a store: beats, changes and reads never wait for each other.
pub struct Lanes<C: Connect> {
    beat: Lane<C>,
    change: Lane<C>,
    watch: Lane<C>,
}

impl<C: Connect> Lanes<C> {
    /// Lanes whose answers may take so long. They run on this runtime, or else each on that of its
    /// first job. The first connection, if there is one already, is for beats.
    pub fn new(
        connect: impl Fn(store::Lane) -> Arc<C>,
        timeout: Duration,
        first: Option<C::Session>,
        runtime: Option<&Handle>,
    ) -> Self {
        let lane = |lane, options, first| {
            let lane = Lane::new(&connect(lane), options, first);
            match runtime {
                Some(runtime) => lane.on(runtime),
                None => lane,
            }
        };
        Self {
            beat: lane(store::Lane::Beat, LaneOptions::beat(timeout), first),
            change: lane(store::Lane::Change, LaneOptions::other(timeout), None),
            watch: lane(store::Lane::Watch, LaneOptions::other(timeout), None),
        }
    }

    /// Does a job on one of them, as [`Lane::exchange`] does.
    ///
    /// # Errors
    ///
    /// As [`Lane::exchange`].
    pub async fn exchange(
        &self,
        lane: store::Lane,
        job: <C::Session as Session>::Job,
        sent: Sent,
    ) -> Result<Reply, StoreError> {
        let lane = match lane {
            store::Lane::Beat => &self.beat,
            store::Lane::Change => &self.change,
            store::Lane::Watch => &self.watch,
        };
        lane.exchange(job, sent).await
    }
}

/// How people are told which lane a connection is for.
#[must_use]
pub fn lane_name(lane: store::Lane) -> &'static str {
    match lane {
        store::Lane::Beat => "beat",
        store::Lane::Change => "change",
        store::Lane::Watch => "watch",
    }
}
