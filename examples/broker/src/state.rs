//! The state: one object, which only a conditional write changes and which says under whose term.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use incumbent::{BoxError, Term};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

/// All jobs that are not finished, and which change of them this is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Jobs {
    /// Under which term it was written: never a lower one than before.
    term: u64,
    revision: u64,
    jobs: BTreeMap<String, Job>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    body: String,
    worker: Option<String>,
}

impl Jobs {
    pub(crate) fn add(&mut self, name: String, body: String) {
        self.jobs.entry(name).or_insert(Job { body, worker: None });
    }

    pub(crate) fn claim(&mut self, worker: &str) -> Option<(String, String)> {
        let fits = |job: &Job| job.worker.as_deref().is_none_or(|it| it == worker);
        let (name, job) = self.jobs.iter_mut().find(|(_, job)| fits(job))?;
        job.worker = Some(worker.to_owned());
        Some((name.clone(), job.body.clone()))
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.jobs.remove(name);
    }
}

/// A change that is in the bucket.
pub(crate) struct Changed<T> {
    pub(crate) answer: T,
    pub(crate) revision: u64,
}

/// The object, and what it holds as far as this process knows.
pub(crate) struct Bucket {
    store: Box<dyn ObjectStore>,
    path: Path,
    /// Nothing if that isn't known for sure.
    held: Mutex<Option<Held>>,
}

#[derive(Clone)]
struct Held {
    jobs: Jobs,
    version: UpdateVersion,
}

/// Why a request was not carried out, or may not have been.
pub(crate) enum Refused {
    /// A later leader has written. Nothing was changed.
    Superseded,
    /// Whether it was carried out is unknown.
    Unknown(Error),
}

impl Bucket {
    /// The object at this URL; keys and endpoints come from the environment, as object_store reads it.
    pub(crate) fn open(url: &str) -> Result<Self, BoxError> {
        let (store, path) = object_store::parse_url_opts(&Url::parse(url)?, std::env::vars())?;
        Ok(Self { store, path, held: Mutex::new(None) })
    }

    /// What there is. Nobody else has changed it, for this node leads until the answer is out.
    pub(crate) async fn look(&self, term: &Term) -> Result<Jobs, Refused> {
        let mut held = self.held.lock().await;
        Ok(self.current(&mut held, term).await?.jobs)
    }

    /// Changes it, one request after the other. What it answers is in the bucket.
    pub(crate) async fn change<T>(
        &self,
        term: &Term,
        change: impl FnOnce(&mut Jobs) -> T,
    ) -> Result<Changed<T>, Refused> {
        let mut held = self.held.lock().await;
        let Held { mut jobs, version } = self.current(&mut held, term).await?;
        let answer = change(&mut jobs);
        jobs.revision += 1;
        let revision = jobs.revision;
        // Unless this comes to its end, nothing is known for sure, and the next one looks.
        *held = None;
        *held = Some(self.put(jobs, PutMode::Update(version)).await?);
        Ok(Changed { answer, revision })
    }

    /// What is in the bucket, under this term. The first look under a term writes it down, so that
    /// nothing that a former leader has sent can land any more: it is conditional on a version that
    /// is gone.
    async fn current(&self, held: &mut Option<Held>, term: &Term) -> Result<Held, Refused> {
        let number = u64::from(term.fence());
        if let Some(known) = held.as_ref().filter(|known| known.jobs.term == number) {
            return Ok(known.clone());
        }
        *held = None;
        let (mut jobs, mode) = match self.store.get(&self.path).await {
            Ok(found) => {
                let (e_tag, version) = (found.meta.e_tag.clone(), found.meta.version.clone());
                let bytes = found.bytes().await.map_err(Refused::Unknown)?;
                let jobs: Jobs = serde_json::from_slice(&bytes).map_err(unreadable)?;
                (jobs, PutMode::Update(UpdateVersion { e_tag, version }))
            }
            Err(Error::NotFound { .. }) => (Jobs::default(), PutMode::Create),
            Err(error) => return Err(Refused::Unknown(error)),
        };
        if jobs.term > number {
            return Err(Refused::Superseded);
        }
        jobs.term = number;
        jobs.revision += 1;
        let taken = self.put(jobs, mode).await?;
        *held = Some(taken.clone());
        Ok(taken)
    }

    async fn put(&self, jobs: Jobs, mode: PutMode) -> Result<Held, Refused> {
        let bytes = serde_json::to_vec(&jobs).map_err(unreadable)?;
        let options = PutOptions::from(mode);
        let put = self.store.put_opts(&self.path, bytes.into(), options).await;
        let put = put.map_err(Refused::Unknown)?;
        let version = UpdateVersion { e_tag: put.e_tag, version: put.version };
        Ok(Held { jobs, version })
    }
}

fn unreadable(error: serde_json::Error) -> Refused {
    Refused::Unknown(Error::Generic {
        store: "the broker's state",
        source: Arc::new(error).to_string().into(),
    })
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let said = match self {
            Self::Superseded => "another broker leads".to_owned(),
            // A refused condition is here too: it may be our own write that was sent twice.
            Self::Unknown(error) => format!("whether that was done is unknown: {error}"),
        };
        (StatusCode::SERVICE_UNAVAILABLE, said + "\n").into_response()
    }
}
