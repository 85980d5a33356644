//! One connection to the server, opened with all the care that relying on it needs.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent_core::store::StoreError;
use incumbent_store_common::locked;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, Row, Socket, Statement};

use crate::facts::Facts;
use crate::hints::Registry;
use crate::options::PostgresOptions;
use crate::statement::Shape;

/// How long a connection may take to say good-bye.
const FAREWELL: Duration = Duration::from_secs(5);

/// An open connection and what is known of it.
pub(crate) struct Session {
    pub(crate) options: Arc<PostgresOptions>,
    /// Whether a pooler hands out other connections behind this one.
    pub(crate) pooled: bool,
    /// In milliseconds, as the server takes it.
    pub(crate) lock_timeout: String,
    pub(crate) facts: Facts,
    /// Whether there are tables. Only who looks goes on without.
    pub(crate) tables: AtomicBool,
    client: Client,
    handle: Handle,
    lost: watch::Receiver<bool>,
    /// The connection says good-bye when this is dropped.
    _end: oneshot::Sender<()>,
    texts: Mutex<BTreeMap<Shape, Text>>,
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
}

impl Line {
    /// Lets a fresh connection run on the store's own runtime.
    pub(crate) fn start<T>(
        (client, connection): (Client, Connection<Socket, T>),
        handle: &Handle,
        hear: Option<Arc<Registry>>,
    ) -> Self
    where
        T: TlsStream + Unpin + Send + 'static,
    {
        let (end, ended) = oneshot::channel();
        let (losing, lost) = watch::channel(false);
        // The runtime is named: it is the one on which the store was opened, so nothing of this
        // lands on the application's (F17, F31).
        handle.spawn(run(connection, hear, ended, losing));
        Self { client, lost, end }
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
    ) -> Session {
        Session {
            options: Arc::clone(options),
            pooled: facts.pooled,
            lock_timeout: options.lock_timeout.as_millis().to_string(),
            facts,
            tables: AtomicBool::new(tables),
            client: self.client,
            handle: handle.clone(),
            lost: self.lost,
            _end: self.end,
            texts: Mutex::new(BTreeMap::new()),
        }
    }
}

impl Session {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits until the connection is lost.
    pub(crate) async fn lost(&self) {
        let _ = self.lost.clone().wait_for(|lost| *lost).await;
    }

    /// Sends one statement in one round trip.
    ///
    /// On a connection of our own, most shapes are prepared behind the scenes after their first
    /// use, so that the server parses and plans them no more. Through a pooler each statement
    /// brings its own text, because the next may reach another server process.
    pub(crate) async fn query(
        self: &Arc<Self>,
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
            self.prepare(shape);
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

    fn prepare(self: &Arc<Self>, shape: Shape) {
        let mut texts = locked(&self.texts);
        let Some(text) = texts.get_mut(&shape) else { return };
        if !matches!(text.prepared, Prepared::Not) {
            return;
        }
        text.prepared = Prepared::UnderWay;
        let (session, text) = (Arc::clone(self), text.clone());
        self.handle.spawn(async move {
            let prepared = session.client.prepare_typed(&text.sql, &text.types).await;
            if let Ok(statement) = prepared
                && let Some(text) = locked(&session.texts).get_mut(&shape)
            {
                text.prepared = Prepared::Ready(statement);
            }
        });
    }
}

/// Moves bytes until the connection ends, or nobody needs it any more.
async fn run<T>(
    mut connection: Connection<Socket, T>,
    hear: Option<Arc<Registry>>,
    mut ended: oneshot::Receiver<()>,
    lost: watch::Sender<bool>,
) where
    T: TlsStream + Unpin,
{
    let mut running = pin!(async {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let (AsyncMessage::Notification(notification), Some(registry)) = (message, &hear) {
                registry.wake(notification.channel());
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

/// Fails after so long with an error that says so.
pub(crate) async fn within<T>(
    options: &PostgresOptions,
    what: &str,
    span: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(span, work).await.unwrap_or_else(|_| {
        Err(StoreError::unavailable(format!(
            "{}: {what} took longer than {span:?}. See that the server runs and can be reached",
            options.server()
        )))
    })
}
