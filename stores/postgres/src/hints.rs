//! Tells subscribers that somebody changed something: LISTEN on the connection for reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use incumbent_core::store::StoreError;
use incumbent_store_common::{Ear, Lane, Lent, Listen, locked, within};
use tokio::sync::mpsc;

use crate::connect::PostgresConnect;
use crate::session::Session;

/// Listens on whatever connection there is for reads.
pub(crate) struct PostgresListen(pub(crate) Arc<Lane<PostgresConnect>>);

/// A connection that listens.
pub(crate) struct PostgresEar {
    lent: Lent<Session>,
    heard: Option<mpsc::Receiver<String>>,
}

impl Listen for PostgresListen {
    type Ear = PostgresEar;

    async fn listen(&self) -> Option<PostgresEar> {
        let lent = self.0.lend().await.ok()?;
        let heard = locked(&lent.session().heard).take();
        // Listening through a pooler would make strangers' connections listen.
        (!lent.session().pooled && heard.is_some()).then_some(PostgresEar { lent, heard })
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
        let heard = self.heard.as_mut()?;
        tokio::select! {
            told = heard.recv() => told,
            () = self.lent.retired() => None,
        }
    }

    async fn answers(&mut self) -> bool {
        self.tell("").await.is_ok()
    }
}

impl PostgresEar {
    async fn tell(&self, sql: &str) -> Result<(), StoreError> {
        let session = self.lent.session();
        let telling = async {
            let told = session.client().batch_execute(sql).await;
            told.map_err(StoreError::unavailable)
        };
        let options = &session.options;
        within(&options.server(), "listening", options.connect_timeout, telling).await
    }
}

impl Drop for PostgresEar {
    /// Whoever listens next may do so on the same connection.
    fn drop(&mut self) {
        *locked(&self.lent.session().heard) = self.heard.take();
    }
}
