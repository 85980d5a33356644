//! A connection that is opened when needed, and the exchanges that go through it.

use std::sync::Arc;

use incumbent_core::store::{Exchange, Reply, StoreError};
use redis::{Cmd, ServerErrorKind, Value};
use tokio::sync::Mutex;

use crate::answer;
use crate::connection::Connection;
use crate::error::{Failure, Sent, broken, nonsense, said};
use crate::keys::Keys;
use crate::options::RedisOptions;
use crate::script;

/// One of the store's queues.
pub(crate) struct LaneConnection {
    name: &'static str,
    options: Arc<RedisOptions>,
    /// None before the first exchange.
    connection: Mutex<Option<Connection>>,
}

impl LaneConnection {
    pub(crate) fn new(name: &'static str, options: &Arc<RedisOptions>) -> Self {
        Self { name, options: Arc::clone(options), connection: Mutex::new(None) }
    }

    /// Sends an exchange, once, and waits for its answer.
    pub(crate) async fn exchange(
        &self,
        keys: &Keys,
        exchange: &Exchange,
    ) -> Result<Reply, StoreError> {
        if let Some(key) = script::impossible_key(exchange) {
            return Err(StoreError::rejected(format!("the key {key:?} can't have an @ in it")));
        }
        let connection = self.connection().await?;
        let mut guarded = Unanswered { connection: Some(connection.clone()) };
        match self.run(connection, keys, exchange).await {
            Ok(reply) => {
                guarded.connection = None;
                Ok(reply)
            }
            Err(Failure { error, keep }) => {
                if keep {
                    guarded.connection = None;
                }
                Err(error)
            }
        }
    }

    /// The open connection, or a new one.
    async fn connection(&self) -> Result<Connection, StoreError> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_over()) {
            return Ok(connection.clone());
        }
        // The old one goes first, so that a server which counts connections has room.
        *slot = None;
        let connection = Connection::open(&self.options, self.name).await?;
        *slot = Some(connection.clone());
        Ok(connection)
    }

    async fn run(
        &self,
        mut connection: Connection,
        keys: &Keys,
        exchange: &Exchange,
    ) -> Result<Reply, Failure> {
        let sent = if exchange.writes.is_empty() { Sent::Nothing } else { Sent::Write };
        let by_hash = script::by_hash(keys, exchange);
        let mut answer = self.call(&mut connection, by_hash, sent).await?;
        if is_unknown_script(&answer) {
            // The server did nothing at all, so that sending it again is sending it once.
            let by_text = script::by_text(keys, exchange);
            answer = self.call(&mut connection, by_text, sent).await?;
        }
        if let Value::ServerError(error) = &answer {
            return Err(said(&self.options, error, sent));
        }
        answer::reply(exchange, answer).ok_or_else(|| nonsense(&self.options, sent))
    }

    async fn call(
        &self,
        connection: &mut Connection,
        command: Cmd,
        sent: Sent,
    ) -> Result<Value, Failure> {
        let options = &*self.options;
        let fail = |error| broken(options, &error, sent);
        if options.wait == 0 || sent == Sent::Nothing {
            return connection.send(&command).await.map_err(fail);
        }
        // The server answers the second when enough replicas have what the first wrote.
        let mut both = redis::pipe();
        both.add_command(command);
        let patience = options.timeout.as_millis() / 2;
        both.cmd("WAIT").arg(options.wait).arg(u64::try_from(patience).unwrap_or(1000));
        let answers = connection.send_all(&both).await.map_err(fail)?;
        let Ok([answer, replicas]) = <[Value; 2]>::try_from(answers) else {
            return Err(nonsense(options, sent));
        };
        match replicas {
            // What wasn't done needs no replicas.
            _ if matches!(answer, Value::ServerError(_)) => Ok(answer),
            Value::Int(count) if count >= i64::from(options.wait) => Ok(answer),
            Value::Int(count) => Err(Failure {
                error: StoreError::unknown(format!(
                    "{}: written, but only {count} of wait={} replicas have it",
                    options.server(),
                    options.wait
                )),
                keep: true,
            }),
            Value::ServerError(error) => {
                let Failure { error, keep } = said(options, &error, sent);
                Err(Failure { error: StoreError::unknown(error.message), keep })
            }
            _ => Err(nonsense(options, sent)),
        }
    }
}

fn is_unknown_script(answer: &Value) -> bool {
    match answer {
        Value::ServerError(error) => error.kind() == Some(ServerErrorKind::NoScript),
        _ => false,
    }
}

/// Gives a connection up on which an answer is missing: because it broke, or because the caller
/// stopped waiting and it may be half-open. Others who wait on it still get their answers.
struct Unanswered {
    connection: Option<Connection>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.give_up();
        }
    }
}
