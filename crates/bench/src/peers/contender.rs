//! Who is measured.

/// Where leases are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Store {
    Postgres,
    Sqlite,
    Redis,
    Etcd,
    Zookeeper,
    Kubernetes,
}

impl Store {
    pub(crate) const ALL: [Self; 6] =
        [Self::Postgres, Self::Sqlite, Self::Redis, Self::Etcd, Self::Zookeeper, Self::Kubernetes];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
            Self::Redis => "Redis",
            Self::Etcd => "etcd",
            Self::Zookeeper => "ZooKeeper",
            Self::Kubernetes => "Kubernetes",
        }
    }

    /// Whether incumbent runs on it.
    pub(crate) fn has_ours(self) -> bool {
        match self {
            Self::Postgres | Self::Sqlite | Self::Redis | Self::Etcd => true,
            Self::Zookeeper | Self::Kubernetes => false,
        }
    }
}

/// How its program is built. Each names its directory under `bench/peers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This library, in `crates/bench/src/bin/contender.rs`.
    Ours,
    /// A package of the workspace `rust`.
    Cargo(&'static str),
    Go(&'static str),
    Maven(&'static str),
    Pip(&'static str),
}

/// What holds its leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// A record with a time in it.
    Lease,
    /// A connection, for as long as the server sees it.
    Connection,
}

/// One who is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    /// Its name in options and files.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) store: Store,
    pub(crate) origin: Origin,
    pub(crate) held: Held,
    /// Which version of what, as its manifest pins it.
    pub(crate) version: &'static str,
    /// Its ttl where nobody sets one.
    pub(crate) default_ttl: &'static str,
    /// The most leases that one process of it is asked for.
    pub(crate) most: usize,
}

const OURS: Contender = Contender {
    key: "ours-postgres",
    title: "incumbent",
    store: Store::Postgres,
    origin: Origin::Ours,
    held: Held::Lease,
    version: env!("CARGO_PKG_VERSION"),
    default_ttl: "15 s",
    most: 10_000,
};

const PEER: Contender = Contender {
    key: "table",
    title: "hand-written lease table",
    origin: Origin::Cargo("table"),
    version: "0.7.18",
    default_ttl: "none",
    // With ten times as many, two processes would ask thirteen thousand times a second.
    most: 1000,
    ..OURS
};

/// All of them, those of one store beside one another.
pub(crate) const ALL: &[Contender] = &[
    OURS,
    PEER,
    Contender {
        key: "river",
        title: "River's client",
        origin: Origin::Go("river"),
        version: "0.51.0",
        default_ttl: "15 s, fixed",
        most: 1,
        ..PEER
    },
    Contender {
        key: "shedlock",
        title: "ShedLock",
        origin: Origin::Maven("shedlock"),
        version: "6.9.2",
        ..PEER
    },
    Contender {
        key: "pg-lease",
        title: "pg_lease",
        origin: Origin::Cargo("pg-lease"),
        version: "0.1.3",
        ..PEER
    },
    Contender {
        key: "advisory",
        title: "advisory lock",
        origin: Origin::Cargo("advisory"),
        held: Held::Connection,
        most: 1,
        ..PEER
    },
    Contender {
        key: "distributed-lock-postgres",
        title: "distributed-lock",
        origin: Origin::Cargo("distributed-lock"),
        held: Held::Connection,
        version: "0.2.0",
        // Each takes a connection of its pool of ten.
        most: 1,
        ..PEER
    },
    Contender { key: "ours-sqlite", store: Store::Sqlite, ..OURS },
    Contender { key: "ours-redis", store: Store::Redis, ..OURS },
    Contender {
        key: "rslock",
        title: "rslock",
        store: Store::Redis,
        origin: Origin::Cargo("rslock"),
        version: "0.10.0",
        ..PEER
    },
    Contender {
        key: "distributed-lock-redis",
        title: "distributed-lock",
        store: Store::Redis,
        origin: Origin::Cargo("distributed-lock"),
        version: "0.2.0",
        default_ttl: "30 s",
        ..PEER
    },
    Contender { key: "ours-etcd", store: Store::Etcd, ..OURS },
    Contender {
        key: "etcd-election",
        title: "concurrency.Election",
        store: Store::Etcd,
        origin: Origin::Go("etcd"),
        version: "3.7.3",
        default_ttl: "60 s",
        // Its session is renewed, and not each of its keys.
        most: 10_000,
        ..PEER
    },
    Contender {
        key: "curator",
        title: "Curator's LeaderLatch",
        store: Store::Zookeeper,
        origin: Origin::Maven("curator"),
        version: "5.9.0",
        default_ttl: "60 s",
        ..PEER
    },
    Contender {
        key: "kazoo",
        title: "kazoo's Election",
        store: Store::Zookeeper,
        origin: Origin::Pip("kazoo"),
        version: "2.11.0",
        default_ttl: "10 s",
        // Each has a thread of its own.
        most: 100,
        ..PEER
    },
    Contender {
        key: "client-go",
        title: "client-go's leaderelection",
        store: Store::Kubernetes,
        origin: Origin::Go("client-go"),
        version: "0.36.3",
        default_ttl: "15 s",
        // Each lease is an object that is renewed for itself.
        most: 100,
        ..PEER
    },
];

impl Contender {
    pub(crate) fn is_ours(&self) -> bool {
        self.origin == Origin::Ours
    }

    /// Its name in tables.
    pub(crate) fn label(&self) -> String {
        format!("{} on {}", self.title, self.store.title())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::peers::build;

    #[test]
    fn versions_are_those_that_the_manifests_pin() {
        let peers = build::root().join("bench/peers");
        for contender in ALL {
            let (manifests, pin): (&[&str], _) = match contender.origin {
                Origin::Ours => continue,
                Origin::Cargo(_) => (
                    &[
                        "rust/Cargo.toml",
                        "rust/rslock/Cargo.toml",
                        "rust/pg-lease/Cargo.toml",
                        "rust/distributed-lock/Cargo.toml",
                    ],
                    format!("\"={}\"", contender.version),
                ),
                Origin::Go("river") => (&["river/go.mod"], format!("river v{}", contender.version)),
                Origin::Go("client-go") => {
                    (&["client-go/go.mod"], format!("client-go v{}", contender.version))
                }
                Origin::Go(_) => (&["etcd/go.mod"], format!("client/v3 v{}", contender.version)),
                Origin::Maven("curator") => {
                    (&["curator/pom.xml"], format!("<version>{}<", contender.version))
                }
                Origin::Maven(_) => {
                    (&["shedlock/pom.xml"], format!("<version>{}<", contender.version))
                }
                Origin::Pip(_) => (&["kazoo/requirements.txt"], format!("=={}", contender.version)),
            };
            let pinned = manifests.iter().any(|manifest| {
                std::fs::read_to_string(peers.join(manifest)).unwrap().contains(&pin)
            });
            assert!(pinned, "{}: no manifest has {pin}", contender.key);
        }
    }

    #[test]
    fn keys_are_unique_and_every_store_of_ours_has_ours() {
        let keys: BTreeSet<&str> = ALL.iter().map(|contender| contender.key).collect();
        assert_eq!(keys.len(), ALL.len());
        for store in Store::ALL {
            let ours = ALL.iter().filter(|it| it.store == store && it.is_ours()).count();
            assert_eq!(ours, usize::from(store.has_ours()), "{}", store.title());
        }
    }
}
