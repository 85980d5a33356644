//! Tells subscribers that somebody changed something: LISTEN on a connection of its own.

use std::collections::BTreeSet;

use incumbent_core::store::StoreError;
use incumbent_store_common::{Ear, Listen, within};
use tokio::sync::mpsc;

use crate::connect::PostgresConnect;
use crate::session::Session;

/// A connection that listens.
pub(crate) struct PostgresEar {
    session: Session,
    heard: mpsc::UnboundedReceiver<String>,
}

impl Listen for PostgresConnect {
    type Ear = PostgresEar;

    async fn listen(&self) -> Option<PostgresEar> {
        let (told, heard) = mpsc::unbounded_channel();
        let session = self.open(Some(told)).await.ok()?;
        // Listening through a pooler would make strangers' connections listen.
        (!session.pooled).then_some(PostgresEar { session, heard })
    }
}

impl Ear for PostgresEar {
    /// The channels are made of letters, digits and underscores.
    async fn tune(&mut self, fresh: &BTreeSet<String>, stale: &BTreeSet<String>) -> Option<()> {
        let unlisten = stale.iter().map(|channel| format!("UNLISTEN {channel};"));
        let listen = fresh.iter().map(|channel| format!("LISTEN {channel};"));
        self.tell(&unlisten.chain(listen).collect::<String>()).await.ok()
    }

    async fn hear(&mut self) -> Option<String> {
        self.heard.recv().await
    }

    async fn answers(&mut self) -> bool {
        self.tell("").await.is_ok()
    }
}

impl PostgresEar {
    async fn tell(&self, sql: &str) -> Result<(), StoreError> {
        let options = &self.session.options;
        let telling = async {
            let told = self.session.client().batch_execute(sql).await;
            told.map_err(StoreError::unavailable)
        };
        within(&options.server(), "listening", options.connect_timeout, telling).await
    }
}
