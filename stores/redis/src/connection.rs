//! One connection, logged in.

use std::pin::Pin;

#[cfg(feature = "tls")]
use incumbent_core::store::ErrorKind;
use incumbent_core::store::StoreError;
use incumbent_store_common::{Sent, within};
use redis::aio::{AsyncStream, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, RedisResult, Value,
};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::error::{broken, said, unreachable};
use crate::options::RedisOptions;

/// What a connection runs over.
pub(crate) type Stream = Pin<Box<dyn AsyncStream + Send + Sync>>;

/// A connection, which closes when it is dropped.
pub(crate) struct Connection {
    redis: MultiplexedConnection,
    /// The task that reads and writes the socket, and a channel that ends with it, however it
    /// ends.
    task: AbortHandle,
    ended: watch::Receiver<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects and logs in, within the time that the options allow. The name is for people, in
    /// the server's list of clients.
    pub(crate) async fn open(options: &RedisOptions, name: &str) -> Result<Self, StoreError> {
        let opening = async {
            let connection = Self::connect(options).await?;
            connection.log_in(options, name).await?;
            Ok(connection)
        };
        let what = match &options.tls {
            None => "connecting",
            Some(_) => "connecting (see that the port speaks TLS)",
        };
        within(&options.server(), what, options.connect_timeout, opening).await
    }

    /// Whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.has_changed().is_err()
    }

    /// Ready once the connection has ended.
    pub(crate) async fn ended(&self) {
        while self.ended.clone().changed().await.is_ok() {}
    }

    /// Sends a command, once.
    pub(crate) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        self.redis.clone().send_packed_command(command).await
    }

    /// Sends several commands at once, once.
    pub(crate) async fn send_all(&self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        self.redis.clone().send_packed_commands(commands, 0, commands.len()).await
    }

    async fn connect(options: &RedisOptions) -> Result<Self, StoreError> {
        let stream = stream(options).await?;
        // Without a password and all else the driver sends nothing of its own.
        let plain = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(options.timeout));
        let (redis, driver) = MultiplexedConnection::new_with_config(&plain, stream, config)
            .await
            .map_err(|error| unreachable(options, &error))?;
        let (running, ended) = watch::channel(());
        let task = Handle::current().spawn(async move {
            driver.await;
            drop(running);
        });
        Ok(Self { redis, task: task.abort_handle(), ended })
    }

    /// Logs in by hand: the driver would call every error on the way a wrong password.
    async fn log_in(&self, options: &RedisOptions, name: &str) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        if let Some(password) = options.password.read("passwordfile")? {
            commands.cmd("AUTH").arg(options.username.as_deref()).arg(password);
        }
        if options.database != 0 {
            commands.cmd("SELECT").arg(options.database);
        }
        commands.cmd("CLIENT").arg("SETNAME").arg(format!("incumbent-{name}"));
        let replies = self.send_all(&commands).await;
        let replies = replies.map_err(|error| refused(options, &error))?;
        let last = replies.len().saturating_sub(1);
        for (place, reply) in replies.iter().enumerate() {
            if let Value::ServerError(error) = reply {
                let failure = said(options, error, Sent::Nothing);
                // A user who may not name the connection can do without.
                let harmless = place == last && is_naming(error);
                if !harmless {
                    return Err(failure.error);
                }
            }
        }
        Ok(())
    }
}

/// With TLS 1.3 a server that wants a client's certificate says so after the handshake. If it was gone
/// before its word could be read, the cause may be another.
fn refused(options: &RedisOptions, error: &RedisError) -> StoreError {
    let plain = broken(options, error, Sent::Nothing).error;
    #[cfg(feature = "tls")]
    if let Some(files) = options.tls.as_ref().filter(|_| !error.is_timeout()) {
        let message = format!("{}. {}", plain.message, files.advice());
        let rejected = error.to_string().contains("alert");
        let kind = if rejected { ErrorKind::Rejected } else { ErrorKind::Unavailable };
        return StoreError { kind, message };
    }
    plain
}

fn is_naming(error: &redis::ServerError) -> bool {
    error.code() == "NOPERM" || error.details().is_some_and(|text| text.contains("unknown"))
}

/// A stream to the server, encrypted if the options say so.
pub(crate) async fn stream(options: &RedisOptions) -> Result<Stream, StoreError> {
    let endpoint = &options.endpoint;
    let connected = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
    let tcp = connected.map_err(|error| unreachable(options, &error))?;
    // An exchange is one small write, and what follows waits for its answer.
    tcp.set_nodelay(true).map_err(|error| unreachable(options, &error))?;
    match &options.tls {
        None => Ok(Box::pin(tcp)),
        #[cfg(feature = "tls")]
        Some(files) => {
            let (server, host) = (options.server(), &endpoint.host);
            Ok(Box::pin(incumbent_store_common::encrypt(files, &server, host, &[], tcp).await?))
        }
        #[cfg(not(feature = "tls"))]
        Some(_) => Err(unreachable(options, &"this program was built without TLS")),
    }
}
