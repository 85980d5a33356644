//! Whether the store can be reached, and whether it does what it is asked.

use incumbent::OpenStore;
use incumbent::store::{
    Exchange, Expect, Found, Key, Lane, Outcome as Written, Put, Read, Stamp, StoreError, Version,
    Write,
};

use super::finding::Finding;

/// The one record that is tried.
const KEY: &str = "lease/tried";

/// Creates, swaps, reads and deletes a record of a scratch cluster.
pub(crate) async fn rights(store: &OpenStore, cluster: &str) -> Finding {
    let trial = Trial { store, cluster };
    match trial.run().await {
        Ok(()) => Finding::ok("rights", "records can be created, swapped, read and deleted"),
        Err((deed, error)) => Finding::fail(
            "rights",
            format!(
                "a record can't be {deed}: {error}. `incumbent store schema` prints what has to \
                 be there and the least rights"
            ),
        ),
    }
}

struct Trial<'a> {
    store: &'a OpenStore,
    cluster: &'a str,
}

/// What couldn't be done, and why.
type Refusal = (&'static str, String);

impl Trial<'_> {
    async fn run(&self) -> Result<(), Refusal> {
        let first = self.applied("created", Expect::Absent, 1).await?;
        self.refused("created twice", Expect::Absent, 2).await?;
        self.applied("swapped", Expect::Version(first.clone()), 3).await?;
        self.refused("swapped by an old version", Expect::Version(first), 4).await?;
        match self.read().await.map_err(|error| ("read", error.to_string()))? {
            Found::Record(record) if record.value == value(3) => {}
            found => {
                return Err(("read", format!("there is {found:?} instead of what was written")));
            }
        }
        let exchange = Exchange { writes: vec![Write::Delete(Key::new(KEY))], reads: Vec::new() };
        let deleted = self.store.exchange(self.cluster, Lane::Change, exchange).await;
        deleted.map_err(|error| ("deleted", error.to_string()))?;
        match self.read().await.map_err(|error| ("read", error.to_string()))? {
            Found::Absent => Ok(()),
            found => Err(("deleted", format!("{found:?} is still there"))),
        }
    }

    async fn applied(
        &self,
        deed: &'static str,
        expect: Expect,
        attempt: u64,
    ) -> Result<Version, Refusal> {
        match self.put(expect, attempt).await.map_err(|error| (deed, error.to_string()))? {
            Some(Written::Applied(version)) => Ok(version),
            other => Err((deed, format!("the store answers {other:?}"))),
        }
    }

    /// A store that doesn't compare would let two lead.
    async fn refused(
        &self,
        deed: &'static str,
        expect: Expect,
        attempt: u64,
    ) -> Result<(), Refusal> {
        match self.put(expect, attempt).await.map_err(|error| (deed, error.to_string()))? {
            Some(Written::Refused) => Ok(()),
            other => Err((deed, format!("and must not, but the store answers {other:?}"))),
        }
    }

    async fn put(&self, expect: Expect, attempt: u64) -> Result<Option<Written>, StoreError> {
        let stamp = Stamp { writer: u64::from(std::process::id()), attempt };
        let put = Put {
            key: Key::new(KEY),
            expect,
            value: value(attempt),
            stamp,
            hint: false,
            durable: true,
        };
        let exchange = Exchange { writes: vec![Write::Put(put)], reads: Vec::new() };
        let reply = self.store.exchange(self.cluster, Lane::Change, exchange).await?;
        Ok(reply.writes.into_iter().next())
    }

    async fn read(&self) -> Result<Found, StoreError> {
        let reads = vec![Read::Key { key: Key::new(KEY), unless: None }];
        let exchange = Exchange { writes: Vec::new(), reads };
        let reply = self.store.exchange(self.cluster, Lane::Watch, exchange).await?;
        Ok(reply.reads.into_iter().next().unwrap_or(Found::Absent))
    }
}

fn value(attempt: u64) -> Vec<u8> {
    format!("{{\"format\":1,\"attempt\":{attempt}}}").into_bytes()
}
