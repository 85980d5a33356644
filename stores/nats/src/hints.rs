//! Tells subscribers that somebody changed something: subscriptions on a connection of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::task::Poll;

use async_nats::Subscriber;
use futures_util::StreamExt as _;
use incumbent_store_common::{Connect as _, Ear, Listen, Session as _};

use crate::connect::NatsConnect;
use crate::session::Session;

/// A connection, and what it subscribed to by channel.
pub(crate) struct NatsEar {
    session: Session,
    heard: BTreeMap<String, Subscriber>,
}

impl Listen for NatsConnect {
    type Ear = NatsEar;

    async fn listen(&self) -> Option<NatsEar> {
        let session = self.connect().await.ok()?;
        Some(NatsEar { session, heard: BTreeMap::new() })
    }
}

impl Ear for NatsEar {
    async fn tune(&mut self, fresh: &BTreeSet<String>, stale: &BTreeSet<String>) -> Option<()> {
        self.heard.retain(|channel, _| !stale.contains(channel));
        for channel in fresh {
            let subscriber = self.session.client()?.subscribe(channel.clone()).await.ok()?;
            self.heard.insert(channel.clone(), subscriber);
        }
        // The server takes one thing after another: with an answer to this it has subscribed.
        self.session.info(None, None).await.ok()?.ok().map(drop)
    }

    async fn hear(&mut self) -> Option<String> {
        let Self { session, heard } = self;
        let next = poll_fn(|context| {
            for (channel, subscriber) in heard.iter_mut() {
                if let Poll::Ready(Some(_)) = subscriber.poll_next_unpin(context) {
                    return Poll::Ready(channel.clone());
                }
            }
            Poll::Pending
        });
        tokio::select! {
            biased;
            channel = next => Some(channel),
            () = session.ended() => None,
        }
    }
}
