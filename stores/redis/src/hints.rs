//! Tells subscribers that somebody changed something, by pub/sub on a connection of its own.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use incumbent_store_common::{Ear, Listen};
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{RedisConnectionInfo, RedisResult};
use std::sync::Arc;
use tokio::time::timeout;

use crate::connection;
use crate::options::RedisOptions;

/// Makes connections that subscribe.
pub(crate) struct RedisListen(pub(crate) Arc<RedisOptions>);

/// A connection that subscribes.
pub(crate) struct RedisEar {
    options: Arc<RedisOptions>,
    sink: PubSubSink,
    stream: PubSubStream,
}

impl Listen for RedisListen {
    type Ear = RedisEar;

    async fn listen(&self) -> Option<RedisEar> {
        let options = Arc::clone(&self.0);
        let connecting = async {
            let stream = connection::stream(&options).await.ok()?;
            // Channels are common to all databases, so that none needs to be selected.
            let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
            if let Some(username) = &options.username {
                login = login.set_username(username);
            }
            if let Some(password) = options.password.read("passwordfile").ok()? {
                login = login.set_password(password);
            }
            PubSub::new(&login, stream).await.ok()
        };
        let connected = timeout(options.connect_timeout, connecting).await.ok()??;
        let (sink, stream) = connected.split();
        Some(RedisEar { options, sink, stream })
    }
}

impl Ear for RedisEar {
    async fn tune(&mut self, fresh: &BTreeSet<String>, stale: &BTreeSet<String>) -> Option<()> {
        let (fresh, stale): (Vec<_>, Vec<_>) = (fresh.iter().collect(), stale.iter().collect());
        if !fresh.is_empty() {
            within(&self.options, self.sink.subscribe(&fresh)).await?;
        }
        if !stale.is_empty() {
            within(&self.options, self.sink.unsubscribe(&stale)).await?;
        }
        Some(())
    }

    async fn hear(&mut self) -> Option<String> {
        let message = self.stream.next().await?;
        Some(message.get_channel_name().to_owned())
    }

    async fn answers(&mut self) -> bool {
        within(&self.options, self.sink.ping::<redis::Value>()).await.is_some()
    }
}

async fn within<T>(
    options: &RedisOptions,
    answer: impl Future<Output = RedisResult<T>>,
) -> Option<T> {
    timeout(options.timeout, answer).await.ok()?.ok()
}
