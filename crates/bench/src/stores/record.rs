//! A record that is swapped again and again through a store.

use std::sync::Arc;

use anyhow::{Result, bail};
use incumbent::clock;
use incumbent::store::{
    Exchange, Expect, Key, Lane, Outcome, Put, Read, Stamp, Store, Version, Write,
};

/// As long as a member's record is.
const VALUE: &str = r#"{"format":1,"id":"9ffa3b0c5d2e4817a6b1c0d9e8f70615","state":"alive","beat":12345,"ttl_ms":15000,"due_ms":5000}"#;

pub(super) struct Swapped {
    pub(super) store: Arc<dyn Store>,
    pub(super) cluster: String,
    pub(super) lane: Lane,
    key: Key,
    hint: bool,
    version: Option<Version>,
    attempt: u64,
    writer: u64,
}

impl Swapped {
    /// A beat reads the board beside its write, and has what is there already.
    pub(super) fn beat(store: &Arc<dyn Store>, cluster: &str) -> Self {
        Self::new(store, cluster, Lane::Beat, "member/9ffa3b0c5d2e4817a6b1c0d9e8f70615", false)
    }

    /// A change of a lease tells others.
    pub(super) fn change(store: &Arc<dyn Store>, cluster: &str) -> Self {
        Self::new(store, cluster, Lane::Change, "lease/scheduler", true)
    }

    pub(super) fn new(
        store: &Arc<dyn Store>,
        cluster: &str,
        lane: Lane,
        key: &str,
        hint: bool,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            cluster: cluster.to_owned(),
            lane,
            key: Key::new(key),
            hint,
            version: None,
            attempt: 0,
            writer: clock::now().as_nanos(),
        }
    }

    pub(super) async fn swap(&mut self, reads: Vec<Read>) -> Result<()> {
        self.attempt += 1;
        let put = Put {
            key: self.key.clone(),
            expect: self.version.take().map_or(Expect::Absent, Expect::Version),
            value: VALUE.as_bytes().to_vec(),
            stamp: Stamp { writer: self.writer, attempt: self.attempt },
            hint: self.hint,
            durable: true,
        };
        let exchange = Exchange { writes: vec![Write::Put(put)], reads };
        let reply = self.store.exchange(&self.cluster, self.lane, exchange).await?;
        match reply.writes.into_iter().next() {
            Some(Outcome::Applied(version)) => self.version = Some(version),
            other => bail!("a swap that nobody contested ended with {other:?}"),
        }
        Ok(())
    }

    /// The version that it has now.
    pub(super) fn version(&self) -> Option<Version> {
        self.version.clone()
    }
}
