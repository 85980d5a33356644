//! Tells subscribers that something of their cluster changed: one watch for each cluster, on keys
//! that only hinted writes touch, so that beats wake nobody. All share a connection of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use incumbent_store_common::{Connect as _, Ear, Listen};
use tokio::time::timeout;

use crate::keys::{Space, Span};
use crate::link::Watching;
use crate::session::{EtcdConnect, EtcdSession};
use crate::wire::{WatchCreateRequest, WatchRequest};

/// Makes connections for watches.
pub(crate) struct EtcdListen(pub(crate) Arc<EtcdConnect>);

/// A connection and the watches on it, by the name of their cluster.
pub(crate) struct EtcdEar {
    session: EtcdSession,
    watches: BTreeMap<String, Watching>,
}

impl Listen for EtcdListen {
    type Ear = EtcdEar;

    async fn listen(&self) -> Option<EtcdEar> {
        let session = self.0.connect().await.ok()?;
        Some(EtcdEar { session, watches: BTreeMap::new() })
    }
}

impl Ear for EtcdEar {
    async fn tune(&mut self, fresh: &BTreeSet<String>, stale: &BTreeSet<String>) -> Option<()> {
        self.watches.retain(|cluster, _| !stale.contains(cluster));
        for cluster in fresh {
            let span = self.session.shared.options.timeout;
            let watching = timeout(span, self.begin(cluster)).await.ok()??;
            self.watches.insert(cluster.clone(), watching);
        }
        Some(())
    }

    /// A watch ends when the connection broke, the member lost its leader, or the watch fell so far
    /// behind that what it wanted was compacted. Whatever it was, another connection is the better
    /// bet.
    async fn hear(&mut self) -> Option<String> {
        poll_fn(|context| {
            for (cluster, watching) in &mut self.watches {
                while let Poll::Ready(response) = watching.poll_next(context) {
                    match response {
                        Some(response) if response.canceled => return Poll::Ready(None),
                        Some(response) if response.events.is_empty() => {}
                        Some(_) => return Poll::Ready(Some(cluster.clone())),
                        None => return Poll::Ready(None),
                    }
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl EtcdEar {
    /// A watch that the server has confirmed.
    async fn begin(&self, cluster: &str) -> Option<Watching> {
        let EtcdSession { shared, link } = &self.session;
        let token = shared.tokens.token(link).await.ok()?;
        let Span { key, end } = Space::new(&shared.options.prefix, cluster).hints();
        let question = WatchRequest { create: Some(WatchCreateRequest { key, range_end: end }) };
        let mut watching = link.watch(question, token.text()).await.ok()?;
        let first = watching.next().await?;
        if first.canceled {
            // It says so too if it has forgotten the token.
            shared.tokens.forget(&token).await;
            return None;
        }
        first.created.then_some(watching)
    }
}
