//! Removing all records of a cluster.

use incumbent::store::{Exchange, Found, Key, Lane, Read, StoreError, Write};
use incumbent::{OpenStore, clock};

/// The name of a cluster that nobody else uses, for a moment.
pub(crate) fn scratch(purpose: &str) -> String {
    format!("{purpose}-{}-{}", std::process::id(), clock::now().as_nanos())
}

/// Removes all records of a cluster and says how many there were.
///
/// Lease records go too, and with them the terms: nobody may be using the cluster any more.
pub(crate) async fn sweep(store: &OpenStore, cluster: &str) -> Result<usize, StoreError> {
    let keys = keys(store, cluster).await?;
    // Half of what the store takes, so that a store that counts its own way takes it too.
    let most = (store.capabilities().max_operations / 2).clamp(1, 500);
    for part in keys.chunks(most) {
        let writes = part.iter().cloned().map(Write::Delete).collect();
        store.exchange(cluster, Lane::Change, Exchange { writes, reads: Vec::new() }).await?;
    }
    Ok(keys.len())
}

/// The keys of all records of a cluster.
pub(crate) async fn keys(store: &OpenStore, cluster: &str) -> Result<Vec<Key>, StoreError> {
    let reads = vec![Read::Prefix(Key::new(""))];
    let exchange = Exchange { writes: Vec::new(), reads };
    let reply = store.exchange(cluster, Lane::Watch, exchange).await?;
    Ok(reply
        .reads
        .into_iter()
        .flat_map(|found| match found {
            Found::Records(records) => records,
            Found::Record(_) | Found::Absent | Found::Unchanged => Vec::new(),
        })
        .map(|record| record.key)
        .collect())
}
