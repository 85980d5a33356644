use std::sync::Arc;
use std::time::Duration;

use incumbent_core::store::{self, Reply, StoreError};
use tokio::runtime::Handle;

use crate::failure::Sent;
use crate::lane::{Connect, Lane, LaneOptions, Session};

/// The three lanes of a store: beats, changes and reads never wait for each other.
///
/// A beat whose connection was lost goes over that for reads while it is being replaced. Where a
/// connection doesn't tell when it breaks, that one may be as broken, so that beats have a second
/// one of their own.
pub struct Lanes<C: Connect> {
    beat: Lane<C>,
    change: Lane<C>,
    watch: Arc<Lane<C>>,
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
            beat: lane(
                store::Lane::Beat,
                LaneOptions { reserve: !C::Session::WATCHED, ..LaneOptions::beat(timeout) },
                first,
            ),
            change: lane(store::Lane::Change, LaneOptions::other(timeout), None),
            watch: Arc::new(lane(store::Lane::Watch, LaneOptions::other(timeout), None)),
        }
    }

    /// The lane for reads, over which a server may tell of changes as well.
    #[must_use]
    pub fn watch(&self) -> &Arc<Lane<C>> {
        &self.watch
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
            store::Lane::Beat
                if C::Session::WATCHED && !self.beat.is_ready() && self.watch.is_ready() =>
            {
                self.beat.want();
                &self.watch
            }
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
