//! A lane: a client with connections of its own, and the requests that go over it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, TryStreamExt as _};
use incumbent_core::store::{
    Expect, Found, Key, Outcome, Put, Read, Record, StoreError, Version, Write,
};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    PutPayload, UpdateVersion,
};
use tokio::sync::Semaphore;

use crate::content;
use crate::error::{Judgement, Place};
use crate::http::traced;
use crate::names::Names;

/// What all lanes of a store share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) names: Names,
    pub(crate) place: Place,
    pub(crate) timeout: Duration,
    /// Whether the clients note what became of their requests; a stranger's client doesn't.
    pub(crate) noted: bool,
    /// Whether versions hold the store's own version beside the ETag: Google compares that. The
    /// others give it only where versioning is on, and not with every answer.
    pub(crate) generations: bool,
    pub(crate) bare_etags: bool,
}

#[derive(Debug)]
pub(crate) struct LaneClient {
    client: Arc<dyn ObjectStore>,
    shared: Arc<Shared>,
    /// One for each request that may be under way, so that a large exchange doesn't open a
    /// connection for each of its operations.
    permits: Semaphore,
}

/// A request that did not end well: what it means, and whether anybody answered it at all.
struct Failed {
    judgement: Judgement,
    answered: bool,
}

impl LaneClient {
    pub(crate) fn new(client: Arc<dyn ObjectStore>, shared: Arc<Shared>, requests: usize) -> Self {
        Self { client, shared, permits: Semaphore::new(requests) }
    }

    pub(crate) async fn write(&self, cluster: &str, write: &Write) -> Result<Outcome, StoreError> {
        match write {
            Write::Put(put) => self.put(cluster, put).await,
            Write::Delete(key) => self.delete(cluster, key).await,
        }
    }

    pub(crate) async fn read(&self, cluster: &str, read: &Read) -> Result<Found, StoreError> {
        match read {
            Read::Key { key, unless } => self.get(cluster, key, unless.as_ref()).await,
            Read::Prefix(prefix) => self.below(cluster, prefix).await.map(Found::Records),
        }
    }

    /// Whether the bucket is there and may be listed and read.
    pub(crate) async fn probe(&self) -> Result<(), StoreError> {
        let nothing = self.shared.names.nothing()?;
        let listing = self.request("listing", async {
            self.client.list(Some(&nothing)).next().await.transpose()
        });
        let reading = self.request("reading", self.client.get(&nothing));
        let (listed, read) = futures_util::join!(listing, reading);
        for failed in [listed.err(), read.err()].into_iter().flatten() {
            if let Judgement::Failure(error) = failed.judgement {
                return Err(harmless(error));
            }
        }
        Ok(())
    }

    async fn put(&self, cluster: &str, put: &Put) -> Result<Outcome, StoreError> {
        let (what, object) = self.about("writing", cluster, &put.key)?;
        let mode = match &put.expect {
            Expect::Absent => PutMode::Create,
            Expect::Version(version) => match self.comparison(version) {
                Some(comparison) => PutMode::Update(comparison),
                // No object ever had such a version.
                None => return Ok(Outcome::Refused),
            },
        };
        let options = PutOptions { mode, attributes: attributes(), ..PutOptions::default() };
        let payload = PutPayload::from(content::wrap(put.stamp, &put.value));
        let sending = self.client.put_opts(&object, payload, options);
        match self.request(&what, sending).await {
            Ok(done) if done.e_tag.is_none() && done.version.is_none() => {
                Err(self.shared.place.strange(&what, "no ETag, without which it can't be compared"))
            }
            Ok(done) => {
                let (generation, etag) = (done.version.as_deref(), done.e_tag.as_deref());
                let stamp = put.stamp.to_string();
                Ok(Outcome::Applied(self.version(Some(&stamp), generation, etag)))
            }
            Err(Failed { judgement, .. }) => match judgement {
                Judgement::Conflict | Judgement::Missing | Judgement::Unchanged => {
                    Ok(Outcome::Refused)
                }
                Judgement::Failure(error) => Err(error),
            },
        }
    }

    async fn delete(&self, cluster: &str, key: &Key) -> Result<Outcome, StoreError> {
        let (what, object) = self.about("deleting", cluster, key)?;
        match self.request(&what, self.client.delete(&object)).await {
            Ok(()) => Ok(Outcome::Deleted),
            Err(Failed { judgement, .. }) => match judgement {
                Judgement::Missing => Ok(Outcome::Deleted),
                Judgement::Failure(error) => Err(error),
                Judgement::Conflict | Judgement::Unchanged => {
                    Err(self.shared.place.strange(&what, "a conflict, though nothing was compared"))
                }
            },
        }
    }

    async fn get(
        &self,
        cluster: &str,
        key: &Key,
        unless: Option<&Version>,
    ) -> Result<Found, StoreError> {
        let (what, object) = self.about("reading", cluster, key)?;
        let etag = unless.and_then(|version| self.comparison(version)?.e_tag);
        let mut answer = self.fetch(&what, &object, etag.clone()).await;
        // A connection may have been closed by the other side since it was last used. To read once
        // more does no harm, and spares a beat that went with this read an unknown outcome.
        if matches!(&answer, Err(failed) if !failed.answered) {
            answer = self.fetch(&what, &object, etag).await;
        }
        match answer {
            Ok((version, value)) if unless == Some(&version) => {
                drop(value);
                Ok(Found::Unchanged)
            }
            Ok((version, value)) => {
                Ok(Found::Record(Record { key: key.clone(), value, version, age: None }))
            }
            Err(Failed { judgement, .. }) => match judgement {
                Judgement::Missing => Ok(Found::Absent),
                Judgement::Unchanged => Ok(Found::Unchanged),
                Judgement::Failure(error) => Err(harmless(error)),
                Judgement::Conflict => {
                    Err(StoreError::unavailable(format!("{what} was answered with a conflict")))
                }
            },
        }
    }

    async fn fetch(
        &self,
        what: &str,
        object: &Path,
        etag: Option<String>,
    ) -> Result<(Version, Vec<u8>), Failed> {
        let options = GetOptions { if_none_match: etag, ..GetOptions::default() };
        let fetching = async {
            let got = self.client.get_opts(object, options).await?;
            let meta = got.meta.clone();
            Ok((meta, got.bytes().await?))
        };
        let (meta, bytes) = self.request(what, fetching).await?;
        let (stamp, value) = content::unwrap(&bytes);
        let version = self.version(stamp, meta.version.as_deref(), meta.e_tag.as_deref());
        Ok((version, value.to_vec()))
    }

    /// Lists, then reads each. A record that was deleted in between is left out, and what a
    /// listing says about versions is not relied on.
    async fn below(&self, cluster: &str, prefix: &Key) -> Result<Vec<Record>, StoreError> {
        let names = &self.shared.names;
        let folder = names.listing(cluster, prefix)?;
        let what = format!("listing {folder}");
        let listing = async { self.client.list(Some(&folder)).try_collect::<Vec<_>>().await };
        let listed = match self.request(&what, listing).await {
            Ok(listed) => listed,
            Err(Failed { judgement: Judgement::Failure(error), .. }) => {
                return Err(harmless(error));
            }
            // Some stores call a folder missing that holds nothing.
            Err(Failed { judgement: Judgement::Missing, .. }) => Vec::new(),
            Err(Failed { judgement: Judgement::Conflict | Judgement::Unchanged, .. }) => {
                return Err(StoreError::unavailable(format!(
                    "{what} was answered with a conflict"
                )));
            }
        };
        let mut keys: Vec<Key> = listed
            .iter()
            .filter_map(|object| names.key(cluster, &object.location))
            .filter(|key| key.as_str().starts_with(prefix.as_str()))
            .collect();
        keys.sort();
        keys.dedup();
        let reads = join_all(keys.iter().map(|key| self.get(cluster, key, None))).await;
        let mut records = Vec::with_capacity(reads.len());
        for read in reads {
            if let Found::Record(record) = read? {
                records.push(record);
            }
        }
        Ok(records)
    }

    /// Sends one request when its turn comes, and judges what goes wrong.
    async fn request<T>(
        &self,
        what: &str,
        operation: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, Failed> {
        let Shared { place, timeout, noted, .. } = &*self.shared;
        let (answer, trace) = traced(async {
            // It is never closed, so this can't fail.
            let _permit = self.permits.acquire().await;
            tokio::time::timeout(*timeout, operation).await
        })
        .await;
        match answer {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                let judgement = place.judge(what, &error, &trace, *noted);
                Err(Failed { judgement, answered: trace.status.is_some() || !trace.asked })
            }
            Err(_) => Err(Failed {
                judgement: Judgement::Failure(place.silent(what)),
                // Whoever took all of that time won't do better at once.
                answered: true,
            }),
        }
    }

    fn about(&self, doing: &str, cluster: &str, key: &Key) -> Result<(String, Path), StoreError> {
        Ok((format!("{doing} {key}"), self.shared.names.object(cluster, key)?))
    }

    fn version(
        &self,
        stamp: Option<&str>,
        generation: Option<&str>,
        etag: Option<&str>,
    ) -> Version {
        content::version(stamp, generation.filter(|_| self.shared.generations), etag)
    }

    fn comparison(&self, version: &Version) -> Option<UpdateVersion> {
        let mut comparison = content::comparison(version)?;
        if self.shared.bare_etags {
            comparison.e_tag = comparison.e_tag.map(|etag| etag.trim_matches('"').to_owned());
        }
        Some(comparison)
    }
}

/// Nothing may answer with an old copy, and a browser may show it.
fn attributes() -> Attributes {
    Attributes::from_iter([
        (Attribute::CacheControl, "no-store"),
        (Attribute::ContentType, "text/plain; charset=utf-8"),
    ])
}

/// A read changes nothing, however it ends.
fn harmless(error: StoreError) -> StoreError {
    match error.kind {
        incumbent_core::store::ErrorKind::Unknown => StoreError::unavailable(error.message),
        incumbent_core::store::ErrorKind::Unavailable
        | incumbent_core::store::ErrorKind::Rejected => error,
    }
}
