//! What a store may lose, in a few sentences for whoever relies on it.

use incumbent::store::Store;

/// What is set up so that it may lose more than it need; empty where all is well.
pub(crate) fn warnings(store: &dyn Store) -> Vec<String> {
    let warnings = store.warnings();
    if warnings.is_empty() && !store.capabilities().durable {
        return vec!["acknowledged writes, and terms with them, in a crash of its machine".into()];
    }
    warnings
}

/// What every store of this kind can lose, however it is set up.
pub(crate) fn of_kind(kind: &str) -> &'static [&'static str] {
    match kind {
        "postgres" | "mysql" => &[
            "the last writes before a failover to an asynchronous replica",
            "everything since a backup, when that is restored: stop all nodes first",
        ],
        "redis" => &[
            "the last writes before a failover: two nodes may lead for up to a ttl",
            "everything, by FLUSHALL or an eviction policy of allkeys-…",
        ],
        "etcd" => &["terms, when a snapshot is restored: stop all nodes first"],
        "nats" => &["all terms, with the bucket"],
        "sqlite" => &["terms, when the file is deleted or restored: stop all nodes first"],
        "memory" => &["everything, with the process"],
        _ => &["terms, when what it stores is deleted or restored: stop all nodes first"],
    }
}
