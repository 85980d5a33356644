//! One connection to the server, opened with all the care that relying on it needs.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent_core::store::Reply;
use incumbent_store_common::{self as common, locked};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, Row, Socket, Statement};

use crate::connect::has_tables;
use crate::exchange::Job;
use crate::facts::Facts;
use crate::options::PostgresOptions;
use crate::rehearsal;
use crate::statement::Shape;

/// How long a connection may take to say good-bye.
const FAREWELL: Duration = Duration::from_secs(5);

/// So many notifications wait for whoever listens at most.
const TOLD: usize = 1024;

/// An open connection and what is known of it.
pub(crate) struct Session {
    pub(crate) options: Arc<PostgresOptions>,
    /// Whether it is for changes, which come long after each other and are waited for.
    changes: bool,
    /// Whether a pooler hands out other connections behind this one.
    pub(crate) pooled: bool,
    /// In milliseconds, as the server takes it.
    pub(crate) lock_timeout: String,
    pub(crate) facts: Facts,
    /// Whether there are tables. Only who looks goes on without.
    pub(crate) tables: AtomicBool,
    /// The channels on which something is told, until somebody listens.
    pub(crate) heard: Mutex<Option<mpsc::Receiver<String>>>,
    client: Arc<Client>,
    handle: Handle,
    lost: watch::Receiver<bool>,
    /// The connection says good-bye when this is dropped.
    _end: oneshot::Sender<()>,
    texts: Arc<Mutex<BTreeMap<Shape, Text>>>,
}

/// One shape of statement on this connection.
#[derive(Clone)]
struct Text {
    sql: Arc<str>,
    types: Arc<[Type]>,
    prepared: Prepared,
}

#[derive(Clone)]
enum Prepared {
    Not,
    UnderWay,
    Ready(Statement),
}

/// The two halves that the driver gives.
pub(crate) struct Line {
    client: Client,
    lost: watch::Receiver<bool>,
    end: oneshot::Sender<()>,
    heard: mpsc::Receiver<String>,
}

impl Line {
    /// Lets a fresh connection run on the store's own runtime.
    pub(crate) fn start<T>(
        (client, connection): (Client, Connection<Socket, T>),
        handle: &Handle,
    ) -> Self
    where
        T: TlsStream + Unpin + Send + 'static,
    {
        let (end, ended) = oneshot::channel();
        let (losing, lost) = watch::channel(false);
        let (told, heard) = mpsc::channel(TOLD);
        // The runtime is named: it is the one on which the store was opened, so nothing of this
        // lands on the application's (F17, F31).
        handle.spawn(run(connection, told, ended, losing));
        Self { client, lost, end, heard }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn session(
        self,
        options: &Arc<PostgresOptions>,
        handle: &Handle,
        facts: Facts,
        tables: bool,
        changes: bool,
    ) -> Session {
        Session {
            changes,
            options: Arc::clone(options),
            pooled: facts.pooled,
            lock_timeout: options.lock_timeout.as_millis().to_string(),
            facts,
            tables: AtomicBool::new(tables),
            client: Arc::new(self.client),
            handle: handle.clone(),
            lost: self.lost,
            heard: Mutex::new(Some(self.heard)),
            _end: self.end,
            texts: Arc::default(),
        }
    }
}

impl Session {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one statement in one round trip.
    ///
    /// On a connection of our own, most shapes are prepared behind the scenes after their first
    /// use, so that the server parses and plans them no more. Through a pooler each statement
    /// brings its own text, because the next may reach another server process.
    pub(crate) async fn query(
        &self,
        shape: Shape,
        parameters: &[Box<dyn ToSql + Send + Sync + '_>],
    ) -> Result<Vec<Row>, Error> {
        let text = self.text(shape);
        let values = parameters.iter().map(|parameter| &**parameter as &(dyn ToSql + Sync));
        if let Prepared::Ready(statement) = &text.prepared {
            return self.client.query(statement, &values.collect::<Vec<_>>()).await;
        }
        let typed: Vec<_> = values.zip(text.types.iter().cloned()).collect();
        let rows = self.client.query_typed(&text.sql, &typed).await?;
        if shape.keeps_plan() {
            self.handle.spawn(self.prepare(shape));
        }
        Ok(rows)
    }

    fn text(&self, shape: Shape) -> Text {
        let mut texts = locked(&self.texts);
        let text = texts.entry(shape).or_insert_with(|| {
            let (sql, types) = shape.text(&self.options.names);
            Text { sql: sql.into(), types: types.into(), prepared: Prepared::Not }
        });
        text.clone()
    }

    /// Has the server parse the statements of this shape once and for all, if it hasn't.
    pub(crate) fn prepare(&self, shape: Shape) -> impl Future<Output = ()> + Send + use<> {
        let text = self.text(shape);
        let (client, texts) = (Arc::clone(&self.client), Arc::clone(&self.texts));
        let begins = match locked(&texts).get_mut(&shape) {
            Some(known) if matches!(known.prepared, Prepared::Not) => {
                known.prepared = Prepared::UnderWay;
                true
            }
            Some(_) | None => false,
        };
        async move {
            if begins
                && let Ok(statement) = client.prepare_typed(&text.sql, &text.types).await
                && let Some(text) = locked(&texts).get_mut(&shape)
            {
                text.prepared = Prepared::Ready(statement);
            }
        }
    }
}

impl common::Session for Session {
    type Job = Job;

    /// The server answers in the order in which it was asked, however much is on its way.
    const AT_ONCE: usize = 256;

    async fn perform(&self, job: &Job) -> Result<Reply, common::Failure> {
        if !has_tables(self).await.map_err(common::Failure::fatal)? {
            return Ok(Reply::of_nothing(&job.exchange));
        }
        Ok(self.exchange(job).await?)
    }

    /// What a hand-over is made of takes the server several times as long when a connection does it
    /// for the first time.
    async fn rehearse(&self) {
        if self.changes && !self.pooled && self.tables.load(Ordering::Acquire) {
            rehearsal::run(self).await;
        }
    }

    async fn answers(&self) -> bool {
        self.client.batch_execute("").await.is_ok()
    }

    fn has_ended(&self) -> bool {
        self.client.is_closed()
    }

    async fn ended(&self) {
        let _ = self.lost.clone().wait_for(|lost| *lost).await;
    }
}

/// Moves bytes until the connection ends, or nobody needs it any more.
async fn run<T>(
    mut connection: Connection<Socket, T>,
    told: mpsc::Sender<String>,
    mut ended: oneshot::Receiver<()>,
    lost: watch::Sender<bool>,
) where
    T: TlsStream + Unpin,
{
    let mut running = pin!(async {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                // Never waits: while nobody hears, whoever listens next is told that anything may have
                // changed.
                let _ = told.try_send(notification.channel().to_owned());
            }
        }
    });
    tokio::select! {
        () = &mut running => {}
        _ = &mut ended => {
            let _ = tokio::time::timeout(FAREWELL, running).await;
        }
    }
    lost.send_replace(true);
}
