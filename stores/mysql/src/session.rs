//! A connection that is set up and known to lead to a server that can be used.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use incumbent_core::store::{Reply, StoreError};
use incumbent_store_common::{Connect, Failure, Sent, Session, within};
use mysql_async::{Conn, DriverError, Error, OptsBuilder};
use tokio::sync::Mutex;

use crate::connection::{Connection, Row, Set, text};
use crate::error::translate;
use crate::exchange::{Job, Talk};
use crate::options::{MysqlOptions, SslMode};
use crate::schema::{self, Present};
use crate::settings::Settings;
use crate::tls;

/// The least that values need, and room for the statement around them.
const LEAST_PACKET: usize = 256 * 1024;

/// What the driver lets through in either direction.
const LARGEST_PACKET: usize = 64 * 1024 * 1024;

/// Makes connections to the server that the options name.
pub(crate) struct MysqlConnect {
    pub(crate) options: MysqlOptions,
    /// Whether the server had no TLS when it was last asked.
    plain: AtomicBool,
}

impl MysqlConnect {
    pub(crate) fn new(options: MysqlOptions) -> Self {
        Self { options, plain: AtomicBool::new(false) }
    }
}

/// One connection, ready for exchanges.
pub(crate) struct MysqlSession {
    pub(crate) settings: Settings,
    options: MysqlOptions,
    /// Whether there are tables. Only who looks goes on without.
    tables: AtomicBool,
    /// One exchange after the other: the protocol knows no more.
    connection: Mutex<Connection>,
}

impl Connect for MysqlConnect {
    type Session = MysqlSession;

    /// Connects, makes the tables if they are missing, and checks that the server can be used.
    async fn connect(&self) -> Result<MysqlSession, StoreError> {
        let Self { options, plain } = self;
        let (server, span) = (options.server(), options.connect_timeout);
        let (connection, settings, tables) =
            within(&server, "connecting", span, open(options, plain)).await?;
        Ok(MysqlSession {
            settings,
            options: options.clone(),
            tables: AtomicBool::new(tables),
            connection: Mutex::new(connection),
        })
    }

    fn server(&self) -> String {
        self.options.server()
    }
}

impl Session for MysqlSession {
    type Job = Job;

    const AT_ONCE: usize = 1;

    /// The driver doesn't watch a connection on which nothing is asked.
    const WATCHED: bool = false;

    async fn perform(&self, job: &Job) -> Result<Reply, Failure> {
        let mut connection = self.connection.lock().await;
        if !self.has_tables(&mut connection).await.map_err(Failure::fatal)? {
            return Ok(Reply::of_nothing(&job.exchange));
        }
        let packet = self.settings.packet;
        Talk { connection: &mut connection, options: &self.options, packet }.exchange(job).await
    }

    async fn answers(&self) -> bool {
        self.connection.lock().await.ping().await.is_ok()
    }

    fn has_ended(&self) -> bool {
        false
    }

    async fn ended(&self) {
        pending().await
    }
}

impl MysqlSession {
    /// Runs one statement that isn't an exchange.
    pub(crate) async fn run(&self, statement: &str) -> Result<Vec<Row>, Error> {
        self.connection.lock().await.run(statement).await
    }

    /// Whether there are tables by now, if there were none when the session was opened to look.
    async fn has_tables(&self, connection: &mut Connection) -> Result<bool, StoreError> {
        if !self.tables.load(Ordering::Acquire) {
            let (_, present) = set_up(connection, &self.options).await?;
            let found = schema::prepare(connection, &self.options, &present).await?;
            self.tables.store(found, Ordering::Release);
        }
        Ok(self.tables.load(Ordering::Acquire))
    }
}

async fn open(
    options: &MysqlOptions,
    plain: &AtomicBool,
) -> Result<(Connection, Settings, bool), StoreError> {
    let mut connection = Connection::new(dial(options, plain).await?);
    let (settings, present) = set_up(&mut connection, options).await?;
    if settings.read_only {
        return Err(read_only(options));
    }
    if settings.packet < LEAST_PACKET {
        return Err(StoreError::rejected(format!(
            "{}: max_allowed_packet is {}, and incumbent needs {LEAST_PACKET} at least: raise \
             it at the server",
            options.server(),
            settings.packet
        )));
    }
    let tables = schema::prepare(&mut connection, options, &present).await?;
    Ok((connection, settings, tables))
}

/// What a server that takes no writes gets told, whichever way it was noticed (F20).
pub(crate) fn read_only(options: &MysqlOptions) -> StoreError {
    StoreError::unavailable(format!(
        "{}: this server is read-only, so it may be a replica whose records are stale. A \
         primary is needed: name it, or wait until one is promoted",
        options.server()
    ))
}

async fn dial(options: &MysqlOptions, plain: &AtomicBool) -> Result<Conn, StoreError> {
    let encrypted = match &options.socket {
        // What stays on this machine isn't encrypted.
        Some(_) => None,
        None => tls::driver(&options.tls)?,
    };
    let password = options.password.read("passwordfile")?;
    let builder = OptsBuilder::default()
        .ip_or_hostname(options.endpoint.host.clone())
        .tcp_port(options.endpoint.port)
        .socket(options.socket.clone())
        .user(Some(options.user.clone()))
        .pass(password)
        .db_name(Some(options.database.clone()))
        .prefer_socket(false)
        // What is given here isn't asked for; the server's own limit is known from its settings.
        .max_allowed_packet(Some(LARGEST_PACKET))
        .wait_timeout(Some(600))
        .stmt_cache_size(0)
        // Half-open connections are found out in minutes instead of hours.
        .tcp_keepalive(Some(Duration::from_secs(10)))
        .tcp_nodelay(true);
    let preferred = options.tls.mode == SslMode::Preferred;
    let secure = Conn::new(builder.clone().ssl_opts(encrypted));
    // A server without TLS says so a round trip or two too late. Known for that, it is dialled
    // both ways at once, and still gets what it can.
    let (secure, open) = if preferred && plain.load(Ordering::Relaxed) {
        let (secure, open) = tokio::join!(secure, Conn::new(builder.clone()));
        (secure, Some(open))
    } else {
        (secure.await, None)
    };
    let without = matches!(secure, Err(Error::Driver(DriverError::NoClientSslFlagFromServer)));
    plain.store(without, Ordering::Relaxed);
    let dialled = match open {
        _ if !(preferred && without) => secure,
        Some(open) => open,
        None => Conn::new(builder).await,
    };
    dialled.map_err(|error| translate(options, &error, Sent::Nothing).error)
}

async fn set_up(
    connection: &mut Connection,
    options: &MysqlOptions,
) -> Result<(Settings, Present), StoreError> {
    let fail = |error: &Error| translate(options, error, Sent::Nothing).error;
    let mut statements: Vec<String> = Settings::statements(options.timeout);
    statements.push(Settings::question());
    statements.push(schema::question(options));
    let brief = statements.clone();
    statements.push(schema::format_question(options));
    let (mut sets, format) = match together(connection, &statements).await {
        Ok(mut sets) => {
            let format = sets.pop().map(|set| set.rows);
            (sets, format)
        }
        // The tables may be missing; if it is something else, this says so again.
        Err(Error::Server(_)) => {
            let sets = together(connection, &brief).await;
            (sets.map_err(|error| fail(&error))?, None)
        }
        Err(error) => return Err(fail(&error)),
    };
    let present = Present { objects: objects(options, sets.pop()), format };
    let settings = Settings::read(&sets.pop().map(|set| set.rows).unwrap_or_default());
    if settings.galera {
        let wait = connection.run(Settings::GALERA).await;
        wait.map_err(|error| fail(&error))?;
    }
    Ok((settings, present))
}

/// Runs statements in one round trip.
async fn together(connection: &mut Connection, statements: &[String]) -> Result<Vec<Set>, Error> {
    let sets = connection.packet(&statements.join(";"), statements.len()).await;
    sets.map_err(|stopped| stopped.error)
}

fn objects(options: &MysqlOptions, set: Option<Set>) -> Vec<(String, Option<String>)> {
    let prefix = options.names.prefix().len();
    let rows = set.map(|set| set.rows).unwrap_or_default();
    rows.iter()
        .filter_map(|row| {
            let name = text(row, 0)?.get(prefix..)?;
            Some((name.to_owned(), text(row, 1).map(str::to_owned)))
        })
        .collect()
}
