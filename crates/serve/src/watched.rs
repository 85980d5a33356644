//! A cluster as it is looked at here. While nobody looks, it isn't read, and costs nothing.

use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use incumbent::{Cluster, ClusterError, Moment, clock};
use tokio::sync::Mutex;

use crate::events::News;
use crate::problem::Problem;
use crate::snapshot::Snapshot;
use crate::verdict::Verdict;

/// Requests within this share one reading.
const SHARED: Duration = Duration::from_millis(200);

/// How old a verdict may be, at least: who watches over many clusters reads none of them more often.
const FRESH: Duration = Duration::from_secs(2);

/// Judging takes no more of the time than one part in so many, however large the cluster is.
const PART: u32 = 20;

/// A cluster that can be looked at.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) cluster: Cluster,
    pub(crate) news: News,
    recent: Mutex<Option<Reading>>,
    judged: Lock<Option<Judged>>,
}

/// What was read last, or why it couldn't be, and when that began.
type Reading = (Moment, Result<Arc<Snapshot>, ClusterError>);

/// How it stood when it was last read, and what that took.
#[derive(Clone, Debug)]
struct Judged {
    at: Moment,
    took: Duration,
    verdict: Verdict,
}

impl Watched {
    /// Nothing is read yet. `run` tells the numbers of its events from those of others.
    pub(crate) fn new(cluster: Cluster, run: &str) -> Self {
        Self { cluster, news: News::new(run), recent: Mutex::default(), judged: Lock::default() }
    }

    /// A reading that isn't older than a moment.
    pub(crate) async fn recent(&self) -> Result<Arc<Snapshot>, Problem> {
        // Who comes while others read takes what the next of them reads, or why that failed: a crowd
        // costs two readings, however long they take.
        let came = clock::now();
        let mut last = self.recent.lock().await;
        if let Some((_, known)) = last.as_ref().filter(|(at, _)| *at + SHARED > came) {
            return Ok(known.clone()?);
        }
        let at = clock::now();
        let fresh = self.read().await.map(Arc::new);
        *last = Some((at, fresh.clone()));
        Ok(fresh?)
    }

    /// Reads all of it, and judges it by the way.
    pub(crate) async fn read(&self) -> Result<Snapshot, ClusterError> {
        let at = clock::now();
        let read = Snapshot::read(&self.cluster).await;
        let verdict = match &read {
            Ok(snapshot) => Verdict::of(snapshot),
            Err(error) => Verdict::unknown(&error.to_string()),
        };
        let judged = Judged { at, took: clock::now().since(at), verdict };
        *self.judged.lock().unwrap_or_else(PoisonError::into_inner) = Some(judged);
        read
    }

    /// How it stood a moment ago, if it was read then.
    pub(crate) fn known_verdict(&self) -> Option<Verdict> {
        self.judged().filter(Judged::is_fresh).map(|judged| judged.verdict)
    }

    /// How it stands, read again if that is too long ago.
    pub(crate) async fn verdict(&self) -> Verdict {
        if let Some(known) = self.known_verdict() {
            return known;
        }
        match self.recent().await {
            // Read for another who asked a moment ago, and judged then.
            Ok(snapshot) => Verdict::of(&snapshot),
            Err(_) => self.judged().map_or_else(|| Verdict::unknown(""), |judged| judged.verdict),
        }
    }

    fn judged(&self) -> Option<Judged> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Judged {
    fn is_fresh(&self) -> bool {
        clock::now().since(self.at) < FRESH.max(self.took * PART)
    }
}
