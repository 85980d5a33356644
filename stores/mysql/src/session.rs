//! A connection that is set up and known to lead to a server that can be used.

use std::time::{Duration, Instant};

use incumbent_core::store::StoreError;
use mysql_async::{Conn, DriverError, Error, OptsBuilder};
use tokio::runtime::{Handle, Id};

use crate::connection::{Connection, Set, text};
use crate::error::{Sent, translate};
use crate::options::{MysqlOptions, SslMode};
use crate::schema::{self, Present};
use crate::settings::Settings;
use crate::tls;

/// A connection that was idle for so long is tried before a write is trusted to it: the server or
/// something in between may have closed it.
const IDLE: Duration = Duration::from_secs(30);

/// The least that values need, and room for the statement around them.
const LEAST_PACKET: usize = 256 * 1024;

/// What the driver lets through in either direction.
const LARGEST_PACKET: usize = 64 * 1024 * 1024;

/// One connection, ready for exchanges.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) settings: Settings,
    runtime: Id,
    used: Instant,
}

impl Session {
    /// Connects, makes the tables if they are missing, and checks that the server will do.
    pub(crate) async fn open(options: &MysqlOptions) -> Result<Self, StoreError> {
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::rejected("the MySQL store needs a tokio runtime to connect on")
        })?;
        let opening = tokio::time::timeout(options.connect_timeout, Self::connect(options));
        let (connection, settings) = opening.await.unwrap_or_else(|_| {
            Err(StoreError::unavailable(format!(
                "{}: no connection within {:?}",
                options.server(),
                options.connect_timeout
            )))
        })?;
        Ok(Self { connection, settings, runtime: runtime.id(), used: now() })
    }

    async fn connect(options: &MysqlOptions) -> Result<(Connection, Settings), StoreError> {
        let mut connection = Connection::new(dial(options).await?);
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
        schema::prepare(&mut connection, options, &present).await?;
        Ok((connection, settings))
    }

    /// Whether an exchange can be trusted to this connection.
    pub(crate) async fn is_usable(&mut self) -> bool {
        // Its socket is watched by the runtime that it was opened on. That one may be gone, or
        // busy with the application's work.
        if !Handle::try_current().is_ok_and(|here| here.id() == self.runtime) {
            return false;
        }
        self.used.elapsed() < IDLE || self.connection.ping().await.is_ok()
    }

    /// Notes that the server has answered just now.
    pub(crate) fn touch(&mut self) {
        self.used = now();
    }
}

/// What a server that takes no writes gets told, whichever way it was noticed (F20).
pub(crate) fn read_only(options: &MysqlOptions) -> StoreError {
    StoreError::unavailable(format!(
        "{}: this server is read-only, so it may be a replica whose records are stale. Only a \
         primary will do: name it, or wait until one is promoted",
        options.server()
    ))
}

/// How long a connection was idle decides nothing but whether to try it first.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

async fn dial(options: &MysqlOptions) -> Result<Conn, StoreError> {
    let encrypted = match &options.socket {
        // What stays on this machine isn't encrypted.
        Some(_) => None,
        None => tls::driver(&options.tls)?,
    };
    let password = options.password.read()?;
    let builder = OptsBuilder::default()
        .ip_or_hostname(options.host.clone())
        .tcp_port(options.port)
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
    let dialled = match Conn::new(builder.clone().ssl_opts(encrypted)).await {
        Err(Error::Driver(DriverError::NoClientSslFlagFromServer))
            if options.tls.mode == SslMode::Preferred =>
        {
            Conn::new(builder).await
        }
        other => other,
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
    let sets = connection.packet(&statements.join(";"), statements.len()).await;
    let mut sets = sets.map_err(|stopped| fail(&stopped.error))?;
    let present = Present { objects: objects(options, sets.pop()) };
    let settings = Settings::read(&sets.pop().map(|set| set.rows).unwrap_or_default());
    if settings.galera {
        let wait = connection.run(Settings::GALERA).await;
        wait.map_err(|error| fail(&error))?;
    }
    Ok((settings, present))
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
