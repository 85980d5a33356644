//! One connection, logged in.

use std::pin::Pin;

use incumbent_core::store::StoreError;
use incumbent_store_common::Sent;
use redis::aio::{AsyncStream, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisResult, Value};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::error::{broken, said, unreachable};
use crate::options::RedisOptions;
use crate::tls;

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
        let waited = options.connect_timeout;
        timeout(waited, opening).await.unwrap_or_else(|_| {
            let advice = if options.tls.is_some() { ". See that the port speaks TLS" } else { "" };
            let why = format!("no answer within {} ms{advice}", waited.as_millis());
            Err(unreachable(options, &why))
        })
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
        if let Some(password) = options.password.read()? {
            commands.cmd("AUTH").arg(options.username.as_deref()).arg(password);
        }
        if options.database != 0 {
            commands.cmd("SELECT").arg(options.database);
        }
        commands.cmd("CLIENT").arg("SETNAME").arg(format!("incumbent-{name}"));
        let replies = self.send_all(&commands).await;
        let replies = replies.map_err(|error| match tls::refusal(options, &error) {
            Some(refusal) => refusal,
            None => broken(options, &error, Sent::Nothing).error,
        })?;
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

fn is_naming(error: &redis::ServerError) -> bool {
    error.code() == "NOPERM" || error.details().is_some_and(|text| text.contains("unknown"))
}

/// A stream to the server, encrypted if the options say so.
pub(crate) async fn stream(options: &RedisOptions) -> Result<Stream, StoreError> {
    let connected = TcpStream::connect((options.host.as_str(), options.port)).await;
    let tcp = connected.map_err(|error| unreachable(options, &error))?;
    // An exchange is one small write, and what follows waits for its answer.
    tcp.set_nodelay(true).map_err(|error| unreachable(options, &error))?;
    match &options.tls {
        None => Ok(Box::pin(tcp)),
        Some(how) => tls::wrap(options, how, tcp).await,
    }
}
