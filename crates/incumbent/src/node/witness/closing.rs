//! Closing a member whose process is surely dead, on its behalf.

use std::time::Duration;

use incumbent_core::MemberId;

use crate::cluster::Cluster;
use crate::open;

/// So often is a store asked that doesn't answer.
const ATTEMPTS: u32 = 5;

/// A member, and where its record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ward {
    /// The URL of the store.
    pub url: String,
    /// The cluster in it.
    pub cluster: String,
    /// The member's id.
    pub member: String,
}

/// Closes the record of a member of which nothing runs any more, so that nobody waits for its
/// ttl. Blocks until that is done.
///
/// The caller must have proof: see [`witness`](crate::witness).
///
/// # Errors
/// If the store can't be reached. Then its leases are free when its ttl has passed.
pub fn close(ward: &Ward) -> Result<(), String> {
    let mut said = String::new();
    for attempt in 0..ATTEMPTS {
        match pollster::block_on(attempt_to_close(ward)) {
            Ok(()) => return Ok(()),
            Err(error) => said = error,
        }
        pause(Duration::from_millis(100 << attempt));
    }
    Err(said)
}

async fn attempt_to_close(ward: &Ward) -> Result<(), String> {
    let store = open::open(&ward.url).await.map_err(|error| error.to_string())?;
    let cluster = Cluster::new(store, &ward.cluster).map_err(|error| error.to_string())?;
    let member = MemberId::new(&ward.member);
    cluster.close_dead(member).await.map_err(|error| error.to_string())
}

#[allow(clippy::disallowed_methods, reason = "a process that has nothing else to do")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}
