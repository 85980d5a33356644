//! Exchanges over one connection.

use std::sync::Arc;

use incumbent_core::store::{Exchange, Reply, StoreError};
use incumbent_store_common::{Connect, Failure, Sent, Session};
use redis::{Cmd, ServerErrorKind, Value};

use crate::answer;
use crate::connection::Connection;
use crate::error::{broken, nonsense, said};
use crate::keys::Keys;
use crate::options::RedisOptions;
use crate::script;

/// One exchange, ready to be sent.
pub(crate) struct Job {
    pub(crate) keys: Keys,
    pub(crate) exchange: Exchange,
}

impl Job {
    /// Refuses what can't be stored, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match script::impossible_key(&self.exchange) {
            Some(key) => {
                Err(StoreError::rejected(format!("the key {key:?} can't have an @ in it")))
            }
            None => Ok(()),
        }
    }
}

/// Makes connections for one purpose.
pub(crate) struct RedisConnect {
    pub(crate) name: &'static str,
    pub(crate) options: Arc<RedisOptions>,
}

/// A connection, ready for exchanges.
pub(crate) struct RedisSession {
    options: Arc<RedisOptions>,
    connection: Connection,
}

impl Connect for RedisConnect {
    type Session = RedisSession;

    async fn connect(&self) -> Result<RedisSession, StoreError> {
        let connection = Connection::open(&self.options, self.name).await?;
        Ok(RedisSession { options: Arc::clone(&self.options), connection })
    }

    fn server(&self) -> String {
        self.options.server()
    }
}

impl Session for RedisSession {
    type Job = Job;

    /// The server answers in the order in which it was asked, however much is on its way.
    const AT_ONCE: usize = 256;

    /// Sends an exchange, once, and waits for its answer.
    async fn perform(&self, job: &Job) -> Result<Reply, Failure> {
        let Job { keys, exchange } = job;
        let (sent, access) = (Sent::of(exchange), self.options.access);
        let by_hash = script::by_hash(keys, exchange, access);
        let mut answer = self.call(by_hash, sent).await?;
        if is_unknown_script(&answer) {
            // The server did nothing at all, so that sending it again is sending it once.
            let by_text = script::by_text(keys, exchange, access);
            answer = self.call(by_text, sent).await?;
        }
        if let Value::ServerError(error) = &answer {
            return Err(said(&self.options, error, sent));
        }
        answer::reply(exchange, answer).ok_or_else(|| nonsense(&self.options, sent))
    }

    async fn answers(&self) -> bool {
        self.connection.send(&redis::cmd("PING")).await.is_ok()
    }

    fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    async fn ended(&self) {
        self.connection.ended().await;
    }
}

impl RedisSession {
    async fn call(&self, command: Cmd, sent: Sent) -> Result<Value, Failure> {
        let Self { options, connection } = self;
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
