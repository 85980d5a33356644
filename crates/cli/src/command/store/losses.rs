//! What a store may lose, in a few sentences for whoever relies on it.

use incumbent::store::Capabilities;

/// What the user of a store should know, the most important first.
pub(super) async fn losses(url: &str, capabilities: &Capabilities) -> Vec<String> {
    let mut losses = asked(url).await;
    if !capabilities.durable && losses.is_empty() {
        losses.push("acknowledged writes, and terms with them, in a crash of its machine".into());
    }
    losses.extend(of_kind(capabilities.kind).iter().map(|text| (*text).to_owned()));
    losses
}

/// What only the server knows.
#[allow(clippy::unused_async, unused_variables, reason = "without PostgreSQL nothing is asked")]
async fn asked(url: &str) -> Vec<String> {
    #[cfg(feature = "postgres")]
    if url.starts_with("postgres") {
        use incumbent::postgres::PostgresStore;
        let store = PostgresStore::connect(url).await;
        return store.map_or_else(|_| Vec::new(), |store| store.facts().warnings());
    }
    Vec::new()
}

fn of_kind(kind: &str) -> &'static [&'static str] {
    match kind {
        "postgres" | "mysql" => &[
            "the last writes before a failover to an asynchronous replica",
            "all since then, when a backup is restored: stop all nodes first",
        ],
        "redis" => &[
            "the last writes before a failover: two nodes may lead for up to a ttl",
            "everything, by FLUSHALL or an eviction policy of allkeys-…",
        ],
        "etcd" => &["terms, when a snapshot is restored: stop all nodes first"],
        "nats" => &[
            "writes of the last sync_interval (two minutes) if the machines lose power",
            "all terms, with the bucket",
        ],
        "sqlite" => &["terms, when the file is deleted or restored: stop all nodes first"],
        "memory" => &["everything, with the process"],
        _ => &["terms, when what it stores is deleted or restored: stop all nodes first"],
    }
}
