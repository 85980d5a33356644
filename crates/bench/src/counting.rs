//! A store that counts what goes through its beat lane.

use std::sync::{Arc, Mutex, PoisonError};

use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Read, Store, Wake, Write};
use incumbent::{OpenStore, clock};

/// One beat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beat {
    pub(crate) writes: usize,
    pub(crate) reads: usize,
    /// Of keys and values that were sent.
    pub(crate) bytes: usize,
    pub(crate) micros: f64,
}

#[derive(Clone)]
pub(crate) struct Counting {
    inner: OpenStore,
    beats: Arc<Mutex<Vec<Beat>>>,
}

impl Counting {
    pub(crate) fn new(inner: impl Into<OpenStore>) -> Self {
        Self { inner: inner.into(), beats: Arc::default() }
    }

    /// All beats since this was last asked.
    pub(crate) fn take(&self) -> Vec<Beat> {
        std::mem::take(&mut self.beats.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count(&self) -> usize {
        self.beats.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Store for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(async move {
            let (writes, reads) = (exchange.writes.len(), exchange.reads.len());
            let bytes = bytes(&exchange);
            let sent = clock::now();
            let answer = self.inner.exchange(cluster, lane, exchange).await;
            if lane == Lane::Beat {
                let micros = clock::now().since(sent).as_nanos() as f64 / 1000.0;
                let beat = Beat { writes, reads, bytes, micros };
                self.beats.lock().unwrap_or_else(PoisonError::into_inner).push(beat);
            }
            answer
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.inner.hints(cluster, wake)
    }
}

fn bytes(exchange: &Exchange) -> usize {
    let written = |write: &Write| match write {
        Write::Put(put) => put.key.as_str().len() + put.value.len(),
        Write::Delete(key) => key.as_str().len(),
    };
    let read = |read: &Read| match read {
        Read::Key { key, unless } => {
            key.as_str().len() + unless.as_ref().map_or(0, |version| version.as_str().len())
        }
        Read::Prefix(key) => key.as_str().len(),
    };
    exchange.writes.iter().map(written).sum::<usize>()
        + exchange.reads.iter().map(read).sum::<usize>()
}
