//! An exchange: all its requests at once, and one answer.

use futures_util::future::{join, join_all};
use incumbent_core::store::{Exchange, Reply, StoreError};
use incumbent_store_common::settled;

use crate::lane::LaneClient;

pub(crate) async fn exchange(
    lane: &LaneClient,
    cluster: &str,
    exchange: Exchange,
) -> Result<Reply, StoreError> {
    let writes = join_all(exchange.writes.iter().map(|write| lane.write(cluster, write)));
    let reads = join_all(exchange.reads.iter().map(|read| lane.read(cluster, read)));
    let (writes, reads) = join(writes, reads).await;
    settled(writes, reads)
}
